#include "tessera/ops/shape/pixel_shuffle.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"

namespace tessera {
namespace {

/// The quotients q in `quotients` for which q * divisor + rest lies in `range`.
Range quotients_in(const Range& range, int64_t divisor, int64_t rest, const Range& quotients) {
  const auto first_at_least = [&](int64_t bound) {
    return ceil_div(std::max<int64_t>(0, bound - rest), divisor);
  };
  return intersect({first_at_least(range.begin), first_at_least(range.end)}, quotients);
}

/// The elements q * step + rest of an axis for q in `quotients`, of a view that covers `range`.
at::Tensor every(const at::Tensor& view, int axis, const Range& range, int64_t step, int64_t rest,
                 const Range& quotients) {
  const int64_t begin = quotients.begin * step + rest - range.begin;
  return view.slice(axis, begin, begin + (quotients.size() - 1) * step + 1, step);
}

/// The large image ("fine", few channels) and the small one ("deep") are the same elements:
///   fine[n, c, y * factor + i, x * factor + j] = deep[n, (c * factor + i) * factor + j, y, x]
/// For each phase (i, j), calls body(fine part, deep part) with the elements that both operands
/// hold, as views of one shape.
template <class Body>
void for_each_phase(int64_t factor, const Operand& fine, const Operand& deep, const Body& body) {
  const int64_t channels_per_channel = factor * factor;
  for (int64_t phase = 0; phase < channels_per_channel; ++phase) {
    const int64_t rest[] = {phase / factor, phase % factor};
    const Range channels = quotients_in(deep.box[1], channels_per_channel, phase, fine.box[1]);
    if (channels.empty()) continue;
    at::Tensor fine_part = every(fine.tensor, 1, fine.box[1], 1, 0, channels);
    at::Tensor deep_part =
        every(deep.tensor, 1, deep.box[1], channels_per_channel, phase, channels);
    bool empty = false;
    for (int axis = 2; axis < 4 && !empty; ++axis) {
      const Range pixels = quotients_in(fine.box[axis], factor, rest[axis - 2], deep.box[axis]);
      empty = pixels.empty();
      if (empty) continue;
      fine_part = every(fine_part, axis, fine.box[axis], factor, rest[axis - 2], pixels);
      deep_part = every(deep_part, axis, deep.box[axis], 1, 0, pixels);
    }
    if (!empty) body(fine_part, deep_part);
  }
}

enum class Direction { kToPixels, kToChannels };

class PixelShuffle final : public Op {
 public:
  PixelShuffle(int64_t factor, Direction direction) : factor_(factor), direction_(direction) {}

  std::string kind() const override {
    return direction_ == Direction::kToPixels ? "pixel_shuffle" : "pixel_unshuffle";
  }
  std::string settings() const override { return fmt::format("factor {}", factor_); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    if (type.element != Element::kReal || type.first_spatial() != 2 || type.num_spatial() != 2)
      throw_error<InvalidInput>("input {} must be real, with batch, channels and 2 spatial axes",
                                to_string(type));
    if (factor_ < 1) throw_error<InvalidInput>("factor {} must be at least 1", factor_);
    const int64_t area = factor_ * factor_;
    if (direction_ == Direction::kToPixels) {
      if (type.channels() % area != 0)
        throw_error<InvalidInput>("{} channels; factor {} needs a multiple of {}", type.channels(),
                                  factor_, area);
      type.axes[1].size /= area;
    } else {
      if (type.axes[2].size % factor_ != 0 || type.axes[3].size % factor_ != 0)
        throw_error<InvalidInput>("image {}x{}; factor {} needs sizes that are multiples of it",
                                  type.axes[2].size, type.axes[3].size, factor_);
      type.axes[1].size *= area;
    }
    for (Axis* axis : {&type.axes[2], &type.axes[3]}) {
      const Ratio ratio =
          direction_ == Direction::kToPixels ? Ratio::of(1, factor_) : Ratio::of(factor_, 1);
      axis->stride = axis->stride * ratio;
      axis->size = axis->size * ratio.den / ratio.num;
    }
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes&) const override {
    const int64_t area = factor_ * factor_;
    const bool to_pixels = direction_ == Direction::kToPixels;
    Box box = out;
    box[1] = to_pixels ? multiplied(out[1], area) : divided(out[1], area);
    for (int axis : {2, 3})
      box[axis] = to_pixels ? divided(out[axis], factor_) : multiplied(out[axis], factor_);
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const Box from = needed(0, args.out_box, *args.types);
    move({args.inputs[0].view(from), from}, {args.output.view(args.out_box), args.out_box},
         direction_);
  }

  void input_gradient(KernelArgs& args) const override {
    const Operand& gradient = args.grad_inputs[0];
    if (!gradient.tensor.defined() || args.out_box.empty()) return;
    // The inputs at the rim of a piece that does not lie on multiples are read in part only.
    if (gradient.box.volume() != args.out_box.volume()) gradient.tensor.zero_();
    move({args.grad_output.view(args.out_box), args.out_box}, gradient,
         direction_ == Direction::kToPixels ? Direction::kToChannels : Direction::kToPixels);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return direction_ == Direction::kToPixels ? at::pixel_shuffle(args.inputs[0], factor_)
                                              : at::pixel_unshuffle(args.inputs[0], factor_);
  }

 private:
  static Range multiplied(const Range& range, int64_t by) {
    return {range.begin * by, range.end * by};
  }
  static Range divided(const Range& range, int64_t by) {
    return {range.begin / by, ceil_div(range.end, by)};
  }

  void move(const Operand& from, const Operand& to, Direction direction) const {
    if (direction == Direction::kToPixels)
      for_each_phase(factor_, to, from,
                     [](at::Tensor fine, const at::Tensor& deep) { fine.copy_(deep); });
    else
      for_each_phase(factor_, from, to,
                     [](const at::Tensor& fine, at::Tensor deep) { deep.copy_(fine); });
  }

  int64_t factor_;
  Direction direction_;
};

class ChannelShuffle final : public Op {
 public:
  explicit ChannelShuffle(int64_t groups) : groups_(groups) {}

  std::string kind() const override { return "channel_shuffle"; }
  std::string settings() const override { return fmt::format("groups {}", groups_); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& type = inputs[0];
    if (type.element != Element::kReal || type.num_axes() < 2 ||
        type.axes[1].kind != AxisKind::kChannel)
      throw_error<InvalidInput>("input {} must be real, with batch and channels first",
                                to_string(type));
    if (groups_ < 1 || type.channels() % groups_ != 0)
      throw_error<InvalidInput>("{} groups of {} channels; give a divisor of the channels", groups_,
                                type.channels());
    return type;
  }

  /// All channels: those of a few outputs lie far apart, and channels are not cut.
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    if (!out[1].empty()) box[1] = {0, types.inputs[0].channels()};
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor in = args.inputs[0].view(needed(0, args.out_box, *args.types));
    for_each_group(args, in, args.output.view(args.out_box),
                   [](const at::Tensor& before, at::Tensor after) { after.copy_(before); });
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (!gradient.defined() || args.out_box.empty()) return;
    if (gradient.numel() != args.out_box.volume()) gradient.zero_();
    for_each_group(args, gradient, args.grad_output.view(args.out_box),
                   [](at::Tensor before, const at::Tensor& after) { before.copy_(after); });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const at::Tensor grouped = x.reshape({x.size(0), groups_, x.size(1) / groups_, -1});
    return grouped.transpose(1, 2).reshape(x.sizes());
  }

 private:
  /// Calls body(channels of the input, the same channels in the output) for each group.
  template <class Body>
  void for_each_group(const KernelArgs& args, const at::Tensor& in, const at::Tensor& out,
                      const Body& body) const {
    const int64_t per_group = args.types->inputs[0].channels() / groups_;
    const Range& channels = args.out_box[1];
    for (int64_t group = 0; group < groups_; ++group) {
      const Range members = quotients_in(channels, groups_, group, {0, per_group});
      if (members.empty()) continue;
      body(in.narrow(1, group * per_group + members.begin, members.size()),
           every(out, 1, channels, groups_, group, members));
    }
  }

  int64_t groups_;
};

}  // namespace

ValueId pixel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  return graph.add_node(name, std::make_shared<PixelShuffle>(factor, Direction::kToPixels), {x});
}

ValueId pixel_unshuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  return graph.add_node(name, std::make_shared<PixelShuffle>(factor, Direction::kToChannels), {x});
}

ValueId channel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t groups) {
  return graph.add_node(name, std::make_shared<ChannelShuffle>(groups), {x});
}

}  // namespace tessera
