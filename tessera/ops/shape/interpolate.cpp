#include "tessera/ops/shape/interpolate.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/interpolate.h"

namespace tessera {
namespace {

/// One entry for all axes, or one for each.
template <class T>
T entry(const std::vector<T>& values, int index) {
  return values.size() == 1 ? values[0] : values[index];
}

bool is_nearest(InterpolationMode mode) {
  return mode == InterpolationMode::kNearest || mode == InterpolationMode::kNearestExact;
}

const char* name_of(InterpolationMode mode) {
  switch (mode) {
    case InterpolationMode::kNearest:
      return "nearest";
    case InterpolationMode::kNearestExact:
      return "nearest-exact";
    case InterpolationMode::kLinear:
      return "linear";
    case InterpolationMode::kCubic:
      return "cubic";
  }
  return "";
}

class Interpolate final : public Op {
 public:
  explicit Interpolate(const InterpolateOptions& options) : options_(options) {}

  std::string kind() const override { return "interpolate"; }
  /// Positions of aligned corners depend on the image's size.
  bool depends_on_place() const override { return options_.corners == Corners::kAligned; }

  std::string settings() const override {
    std::string text = name_of(options_.mode);
    if (options_.corners == Corners::kAligned) text += ", aligned corners";
    if (!options_.size.empty()) return text + ", to " + to_string(options_.size);
    text += ", by ";
    for (size_t i = 0; i < options_.scale.size(); ++i)
      text += fmt::format("{}{}", i ? "x" : "", options_.scale[i]);
    return text;
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    check_options(input);
    ValueType output = input;
    for (int index = 0; index < input.num_spatial(); ++index) {
      Axis& axis = output.axes[2 + index];
      const int64_t size = output_size(axis.size, index);
      if (size < 1)
        throw_error<InvalidInput>("spatial axis {} goes from size {} to {}; give at least 1", index,
                                  axis.size, size);
      check_nearest_is_unambiguous(along(index, axis.size, size));
      axis.stride = axis.stride * Ratio::of(axis.size, size);
      axis.size = size;
    }
    check_cubic_is_unambiguous(input, output);
    return output;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    for (int axis = 2; axis < out.num_axes(); ++axis)
      box[axis] = along(axis - 2, types).needed(out[axis]);
    return box;
  }

  bool cheap_to_recompute() const override { return true; }
  bool takes_narrow(Phase, at::DeviceType device) const override { return device != at::kCPU; }

  double flops(const Box& out, const NodeTypes& types) const override {
    if (is_nearest(options_.mode)) return 0;
    const double taps = options_.mode == InterpolationMode::kLinear ? 2 : 4;
    return 2 * std::pow(taps, types.output.num_spatial()) * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const Box reads = needed(0, args.out_box, *args.types);
    interpolate_piece(piece_sources(args.out_box, reads, *args.types), args.inputs[0].view(reads),
                      args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const Box reads = needed(0, args.out_box, *args.types);
    interpolate_piece_adjoint(piece_sources(args.out_box, reads, *args.types),
                              args.grad_output.view(args.out_box), args.grad_inputs[0].view(reads));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    std::vector<int64_t> sizes;
    std::vector<double> scale;  // 0 is PyTorch's "from the sizes"
    for (int index = 0; index < num_spatial; ++index) {
      sizes.push_back(output_size(x.size(2 + index), index));
      scale.push_back(coordinate_scale(index));
    }
    const at::IntArrayRef size(sizes);
    const bool aligned = options_.corners == Corners::kAligned;
    if (is_nearest(options_.mode)) return nearest_reference(x, sizes, scale);
    if (options_.mode == InterpolationMode::kCubic)
      return at::upsample_bicubic2d(x, size, aligned, scale[0], scale[1]);
    if (num_spatial == 1) return at::upsample_linear1d(x, size, aligned, scale[0]);
    if (num_spatial == 2) return at::upsample_bilinear2d(x, size, aligned, scale[0], scale[1]);
    return at::upsample_trilinear3d(x, size, aligned, scale[0], scale[1], scale[2]);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    if (options_.recompute_scale_factor) return std::nullopt;
    const int num_spatial = args.types->inputs[0].num_spatial();
    std::vector<std::string> sizes = args.size, scales;
    for (int index = 0; index < num_spatial; ++index) {
      if (!options_.scale.empty())
        scales.push_back(script_real(entry(options_.scale, index)));
      else if (args.size.empty())
        sizes.push_back(std::to_string(entry(options_.size, index)));
    }
    std::vector<std::string> arguments{args.inputs[0],
                                       scales.empty() ? script_list(sizes) : "None"};
    if (!is_nearest(options_.mode))
      arguments.push_back(script_bool(options_.corners == Corners::kAligned));
    arguments.push_back(scales.empty() ? "None" : script_list(scales));
    return script_call(builtin_name(num_spatial), arguments);
  }

 private:
  std::string builtin_name(int num_spatial) const {
    constexpr const char* kLinear[] = {"linear", "bilinear", "trilinear"};
    switch (options_.mode) {
      case InterpolationMode::kNearest:
        return fmt::format("torch.upsample_nearest{}d", num_spatial);
      case InterpolationMode::kNearestExact:
        return fmt::format("torch._upsample_nearest_exact{}d", num_spatial);
      case InterpolationMode::kLinear:
        return fmt::format("torch.upsample_{}{}d", kLinear[num_spatial - 1], num_spatial);
      case InterpolationMode::kCubic:
        return fmt::format("torch.upsample_bicubic{}d", num_spatial);
    }
    throw_error<InternalError>("interpolation {} is unknown", static_cast<int>(options_.mode));
  }

  /// PyTorch's float64 kernels round coordinates in different ways, contiguous or channels last,
  /// forward or backward. Its kernels along one axis say which element a network in use reads.
  at::Tensor nearest_reference(at::Tensor x, const std::vector<int64_t>& sizes,
                               const std::vector<double>& scale) const {
    for (size_t index = 0; index < sizes.size(); ++index) {
      const int64_t axis = 2 + static_cast<int64_t>(index);
      x = x.index_select(axis, read_indices(x.size(axis), sizes[index], scale[index]));
    }
    return x;
  }

  at::Tensor read_indices(int64_t input_size, int64_t output_size, double scale) const {
    c10::NoGradGuard no_grad;
    const at::IntArrayRef size(output_size);
    if (options_.mode == InterpolationMode::kNearest) {
      const at::Tensor ramp = at::arange(input_size, at::kFloat).view({1, 1, -1});
      return at::upsample_nearest1d(ramp, size, scale).view({-1}).to(at::kLong);
    }
    // The gradient of a sum counts the outputs that read an input; indices do not decrease. Unlike
    // the forward of a contiguous tensor it does not depend on the compiler's fused instructions.
    const at::Tensor ones = at::ones({1, 1, output_size}, at::kDouble);
    const at::Tensor counts =
        at::_upsample_nearest_exact1d_backward(ones, size, {1, 1, input_size}, scale);
    return at::repeat_interleave(counts.view({-1}).to(at::kLong));
  }

  void check_options(const ValueType& input) const {
    const size_t num_spatial = input.num_spatial();
    if (input.first_spatial() != 2 || num_spatial < 1 || num_spatial > 3 ||
        input.element != Element::kReal)
      throw_error<InvalidInput>(
          "input {} must be real, with batch, channels and 1 to 3 spatial axes", to_string(input));
    if (options_.size.empty() == options_.scale.empty())
      throw_error<InvalidInput>("give either size or scale, got {} and {} entries",
                                options_.size.size(), options_.scale.size());
    const size_t entries = options_.size.size() + options_.scale.size();
    if (entries != 1 && entries != num_spatial)
      throw_error<InvalidInput>("size or scale has {} entries; give 1 or {}", entries, num_spatial);
    for (double scale : options_.scale)
      if (!(scale > 0)) throw_error<InvalidInput>("scale {} must be greater than 0", scale);
    if (options_.recompute_scale_factor && options_.scale.empty())
      throw_error<InvalidInput>("recompute_scale_factor needs a scale, and size was given");
    if (is_nearest(options_.mode) && options_.corners == Corners::kAligned)
      throw_error<InvalidInput>("nearest interpolation has no aligned corners; use linear");
    if (options_.mode == InterpolationMode::kCubic && num_spatial != 2)
      throw_error<InvalidInput>(
          "cubic interpolation of {} spatial axes; it needs 2, as in PyTorch; use linear",
          num_spatial);
  }

  /// Where the sizes have ratio 1 or 2, some of PyTorch's nearest kernels go by the ratio and
  /// others by the user's scale, even forward and backward of one tensor: no result would be exact.
  static void check_nearest_is_unambiguous(const Interpolation& axis) {
    if (axis.mode != InterpolationMode::kNearest || axis.scale == 0) return;
    if (axis.output_size != axis.input_size && axis.output_size != 2 * axis.input_size) return;
    Interpolation by_ratio = axis;
    by_ratio.scale = 0;
    for (int64_t o = 0; o < axis.output_size; ++o)
      if (axis.source(o).first() != by_ratio.source(o).first())
        throw_error<InvalidInput>(
            "scale {} takes size {} to {}, where PyTorch reads nearest neighbours both by the "
            "scale and by the ratio of the sizes; use scale {}, or recompute_scale_factor",
            axis.scale, axis.input_size, axis.output_size, axis.output_size / axis.input_size);
  }

  /// Where no size changes, PyTorch's cubic forward goes by the user's scale, and its backward
  /// copies.
  void check_cubic_is_unambiguous(const ValueType& input, const ValueType& output) const {
    if (options_.mode != InterpolationMode::kCubic || options_.corners == Corners::kAligned) return;
    if (input.shape() != output.shape()) return;
    for (int index = 0; index < input.num_spatial(); ++index)
      if (const double scale = coordinate_scale(index); scale != 0 && scale != 1)
        throw_error<InvalidInput>(
            "scale {} leaves {} as it is, where PyTorch's forward and backward of cubic "
            "interpolation differ; use scale 1, or recompute_scale_factor",
            scale, to_string(input));
  }

  int64_t output_size(int64_t input_size, int index) const {
    if (!options_.size.empty()) return entry(options_.size, index);
    return static_cast<int64_t>(static_cast<double>(input_size) * entry(options_.scale, index));
  }

  /// The factor that coordinates are taken by, or 0 for the ratio of the sizes.
  double coordinate_scale(int index) const {
    const bool from_sizes = options_.scale.empty() || options_.recompute_scale_factor;
    return from_sizes ? 0 : entry(options_.scale, index);
  }

  Interpolation along(int index, int64_t input_size, int64_t output_size) const {
    return {options_.mode, options_.corners, input_size, output_size, coordinate_scale(index)};
  }
  Interpolation along(int index, const NodeTypes& types) const {
    return along(index, types.inputs[0].axes[2 + index].size, types.output.axes[2 + index].size);
  }

  PieceSources piece_sources(const Box& out, const Box& reads, const NodeTypes& types) const {
    PieceSources sources;
    const int num_spatial = out.num_axes() - 2;
    for (int missing = 0; missing < 3 - num_spatial; ++missing) sources[missing].resize(1);
    for (int index = 0; index < num_spatial; ++index) {
      const Interpolation axis = along(index, types);
      for (int64_t o = out[2 + index].begin; o < out[2 + index].end; ++o) {
        Interpolation::Source source = axis.source(o);
        for (int tap = 0; tap < source.num_taps; ++tap) source.index[tap] -= reads[2 + index].begin;
        sources[3 - num_spatial + index].push_back(source);
      }
    }
    return sources;
  }

  InterpolateOptions options_;
};

}  // namespace

ValueId interpolate(Graph& graph, ValueId x, const std::string& name,
                    const InterpolateOptions& options) {
  return graph.add_node(name, std::make_shared<Interpolate>(options), {x});
}

}  // namespace tessera
