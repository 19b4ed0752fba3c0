#include "tessera/ops/shape/pad.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/script.h"
#include "tessera/ops/shape/circular_pad.h"

namespace tessera {
namespace {

using Mode = PadOptions::Mode;

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::kConstant:
      return "constant";
    case Mode::kReflect:
      return "reflect";
    case Mode::kReplicate:
      return "replicate";
    case Mode::kCircular:
      return "circular";
  }
  return "";
}

void check_axis(const PadOptions& options, size_t index, int64_t size) {
  const int64_t low = options.low[index], high = options.high[index];
  if (options.mode == Mode::kConstant) {
    if (size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0) < 1)
      throw_error<InvalidInput>(
          "low {} and high {} crop all of spatial axis {}, whose size is {}; leave at least 1", low,
          high, index, size);
    return;
  }
  if (low < 0 || high < 0)
    throw_error<InvalidInput>(
        "low {} and high {} of spatial axis {} crop, and {} padding cannot; crop first, by "
        "constant padding",
        low, high, index, name_of(options.mode));
  const int64_t most = options.mode == Mode::kReflect ? size - 1 : size;
  if (options.mode != Mode::kReplicate && std::max(low, high) > most)
    throw_error<InvalidInput>(
        "low {} and high {} of spatial axis {}, whose size is {}; {} padding takes at most {}", low,
        high, index, size, name_of(options.mode), most);
}

/// The type of the padded value. Throws InvalidInput where the options do not fit.
ValueType padded_type(const PadOptions& options, ValueType type) {
  const size_t num_spatial = static_cast<size_t>(type.num_spatial());
  if (type.element != Element::kReal)
    throw_error<InvalidInput>("the input holds labels; give real numbers");
  if (options.low.size() != num_spatial || options.high.size() != num_spatial)
    throw_error<InvalidInput>("low has {}, high {}; give one per spatial axis of {}: {}",
                              counted(std::ssize(options.low), "entry", "entries"),
                              counted(std::ssize(options.high), "entry", "entries"),
                              to_string(type), num_spatial);
  for (size_t i = 0; i < num_spatial; ++i) {
    Axis& axis = type.axes[type.first_spatial() + i];
    check_axis(options, i, axis.size);
    axis.size += options.low[i] + options.high[i];
  }
  return type;
}

/// The padding of torch.nn.functional.pad: (low, high) of the last axis first.
std::vector<int64_t> last_axis_first(const PadOptions& options) {
  std::vector<int64_t> padding;
  for (size_t i = options.low.size(); i-- > 0;) {
    padding.push_back(options.low[i]);
    padding.push_back(options.high[i]);
  }
  return padding;
}

/// Consecutive outputs along one axis, and where they come from.
struct Segment {
  Range out;
  Range in;  // as long as `out`, or one pixel for all of it; empty: the constant
  bool flipped = false;
};

/// A part of an output box that is one segment along every axis.
struct Part {
  Box out;
  Box in;  // empty: the constant
  std::vector<int64_t> flipped_axes;
  std::vector<int64_t> repeated_axes;
};

/// Constant, reflected and replicated borders.
class Pad final : public Op {
 public:
  explicit Pad(const PadOptions& options) : options_(options) {}

  std::string kind() const override { return "pad"; }

  std::string settings() const override {
    const std::string text = fmt::format("{}, low {}, high {}", name_of(options_.mode),
                                         to_string(options_.low), to_string(options_.high));
    return options_.value == 0 ? text : fmt::format("{}, value {}", text, options_.value);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return padded_type(options_, inputs[0]);
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    for (int axis = types.inputs[0].first_spatial(); axis < out.num_axes(); ++axis) {
      box[axis] = {};
      for (const Segment& segment : segments(axis, out[axis], types))
        box[axis] = hull(box[axis], segment.in);
    }
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    for (const Part& part : parts(args.out_box, *args.types)) {
      at::Tensor target = args.output.view(part.out);
      if (part.in.empty()) {
        target.fill_(options_.value);
        continue;
      }
      at::Tensor source = args.inputs[0].view(part.in);
      if (!part.flipped_axes.empty()) source = source.flip(part.flipped_axes);
      target.copy_(source);  // which repeats axes of size 1
    }
  }

  void input_gradient(KernelArgs& args) const override {
    const Operand& gradient = args.grad_inputs[0];
    if (!gradient.tensor.defined() || gradient.box.empty()) return;
    bool stored = false;
    for (const Part& part : parts(args.out_box, *args.types)) {
      if (part.in.empty()) continue;
      at::Tensor source = args.grad_output.view(part.out);
      if (!part.repeated_axes.empty()) source = source.sum(part.repeated_axes, /*keepdim=*/true);
      if (!part.flipped_axes.empty()) source = source.flip(part.flipped_axes);
      if (!stored && part.in == gradient.box) {
        gradient.tensor.copy_(source);
      } else {
        if (!stored) gradient.tensor.zero_();
        gradient.view(part.in).add_(source);
      }
      stored = true;
    }
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const std::vector<int64_t> padding = last_axis_first(options_);
    if (options_.mode == Mode::kConstant)
      return at::constant_pad_nd(args.inputs[0], padding, options_.value);
    return at::pad(args.inputs[0], padding, name_of(options_.mode));
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    if (options_.mode != Mode::kConstant || !std::isfinite(options_.value)) return std::nullopt;
    if (!args.size.empty()) return script_by_size(args);
    return script_call(
        "torch.constant_pad_nd",
        {args.inputs[0], script_list(last_axis_first(options_)), script_real(options_.value)});
  }

 private:
  /// The segments of `out` along an axis that are not empty, the image first: its gradient is
  /// stored, and those of the borders are added to it.
  std::vector<Segment> segments(int axis, const Range& out, const NodeTypes& types) const {
    const int first = types.inputs[0].first_spatial();
    if (axis < first) return {{out, out}};
    const int64_t low = options_.low[axis - first], size = types.inputs[0].axes[axis].size;
    const Range image = intersect(out, {low, low + size});
    std::vector<Segment> result;
    if (!image.empty()) result.push_back({image, image.shifted(-low)});
    const Range below = intersect(out, {0, low});
    if (!below.empty()) result.push_back(border(below, low, 0));
    const Range above{std::max(out.begin, low + size), out.end};
    if (!above.empty()) result.push_back(border(above, low, size - 1));
    return result;
  }

  /// Outputs next to input `edge`, the first or the last.
  Segment border(const Range& out, int64_t low, int64_t edge) const {
    if (options_.mode == Mode::kConstant) return {out, {}};
    if (options_.mode == Mode::kReplicate) return {out, {edge, edge + 1}};
    const int64_t mirror = 2 * edge + low;  // minus the output's position
    return {out, {mirror - out.end + 1, mirror - out.begin + 1}, /*flipped=*/true};
  }

  std::vector<Part> parts(const Box& out, const NodeTypes& types) const {
    std::vector<Part> parts{Part()};
    for (int axis = 0; axis < out.num_axes(); ++axis) {
      std::vector<Part> longer;
      for (const Part& part : parts)
        for (const Segment& segment : segments(axis, out[axis], types)) {
          Part next = part;
          next.out.push_back(segment.out);
          next.in.push_back(segment.in);
          if (segment.flipped) next.flipped_axes.push_back(axis);
          if (segment.in.size() < segment.out.size()) next.repeated_axes.push_back(axis);
          longer.push_back(std::move(next));
        }
      parts = std::move(longer);
    }
    return parts;
  }

  /// Numbers at the end alone, or alike at both ends, are those of a rule for the size.
  std::optional<std::string> script_by_size(const ScriptArgs& args) const {
    const std::vector<int64_t> zeros(options_.low.size(), 0);
    if (options_.low == zeros)
      return padded_script(args.inputs[0], args.size, PadWhere::kEnd, options_.value);
    if (options_.low == options_.high)
      return padded_script(args.inputs[0], args.size, PadWhere::kBothEnds, options_.value);
    return std::nullopt;
  }

  PadOptions options_;
};

/// Circular padding: one node per axis, the last of which has the name.
ValueId pad_around(Graph& graph, ValueId x, const std::string& name, const PadOptions& options) {
  try {
    padded_type(options, graph.type(x));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[pad {}] {}", name, error.what());
  }
  std::vector<size_t> padded;
  for (size_t i = 0; i < options.low.size(); ++i)
    if (options.low[i] + options.high[i] > 0) padded.push_back(i);
  const int first = graph.type(x).first_spatial();
  for (size_t i : padded)
    x = circular_pad(graph, x, i == padded.back() ? name : fmt::format("{}.axis{}", name, i),
                     first + static_cast<int>(i), options.low[i], options.high[i]);
  return x;
}

}  // namespace

std::string padded_script(const std::string& x, const std::vector<std::string>& size,
                          PadWhere where, double value) {
  std::vector<std::string> padding;  // of the last axis first
  for (size_t i = size.size(); i-- > 0;) {
    const std::string missing = fmt::format("{} - {}.size({})", size[i], x, 2 + i);
    const std::string half = fmt::format("({}) // 2", missing);
    padding.push_back(where == PadWhere::kEnd ? "0" : half);
    padding.push_back(where == PadWhere::kEnd ? missing : half);
  }
  return script_call("torch.constant_pad_nd", {x, script_list(padding), script_real(value)});
}

ValueId pad(Graph& graph, ValueId x, const std::string& name, const PadOptions& options) {
  if (options.mode == Mode::kCircular) return pad_around(graph, x, name, options);
  return graph.add_node(name, std::make_shared<Pad>(options), {x});
}

}  // namespace tessera
