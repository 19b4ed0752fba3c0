#include "tessera/ops/pool/spatial_reduction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {
namespace {

class SpatialReduction final : public Op {
 public:
  /// No axes: all of them.
  explicit SpatialReduction(const SpatialReductionOptions& options) : options_(options) {}

  std::string kind() const override { return is_mean() ? "spatial_mean" : "spatial_sum"; }
  std::string settings() const override {
    return options_.axes.empty() ? "" : fmt::format("axes {}", fmt::join(options_.axes, ", "));
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    check_options(inputs[0]);
    ValueType output = inputs[0];
    for (int64_t axis : reduced_axes(inputs[0])) {
      Axis& reduced = output.axes[axis];
      reduced.stride = reduced.stride * Ratio::of(reduced.size, 1);
      reduced.size = 1;
    }
    if (!options_.keep_axes) output.axes.resize(2);
    return output;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    const ValueType& input = types.inputs[0];
    if (out.empty()) return Box(std::vector<Range>(input.num_axes()));
    Box box = out;
    while (box.num_axes() < input.num_axes()) box.push_back({0, 1});
    for (int64_t axis : reduced_axes(input)) box[axis] = {0, input.axes[axis].size};
    return box;
  }

  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

  void forward(KernelArgs& args) const override {
    refuse_whole_space(args);
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(needed(0, args.out_box, *args.types));
    const std::vector<int64_t> axes = reduced_axes(args.types->inputs[0]);
    at::Tensor output = args.output.view(args.out_box);
    if (is_mean())
      at::mean_out(output, x, axes, /*keepdim=*/true);
    else
      at::sum_out(output, x, axes, /*keepdim=*/true);
  }

  void input_gradient(KernelArgs& args) const override {
    refuse_whole_space(args);
    at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (args.out_box.empty() || !gradient.defined()) return;
    at::mul_out(gradient, args.grad_output.tensor.expand_as(gradient),
                at::scalar_tensor(scale(args.types->inputs[0]), gradient.options()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    std::vector<int64_t> axes;
    for (int axis : options_.axes) axes.push_back(2 + axis);
    for (int64_t axis = 2; reduces_whole_space() && axis < args.inputs[0].dim(); ++axis)
      axes.push_back(axis);
    return is_mean() ? args.inputs[0].mean(axes, options_.keep_axes)
                     : args.inputs[0].sum(axes, options_.keep_axes);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call(is_mean() ? "torch.mean" : "torch.sum",
                       {args.inputs[0], script_list(reduced_axes(args.types->inputs[0])),
                        script_bool(options_.keep_axes)});
  }

  bool reduces_whole_space() const { return options_.axes.empty(); }

  /// What a sum is multiplied by.
  double scale(const ValueType& input) const {
    double pixels = 1;
    for (int64_t axis : reduced_axes(input)) pixels *= static_cast<double>(input.axes[axis].size);
    return is_mean() ? 1 / pixels : 1;
  }

 private:
  bool is_mean() const { return options_.how == SpatialReductionOptions::How::kMean; }

  void check_options(const ValueType& input) const {
    const int num_spatial = input.num_spatial();
    if (input.first_spatial() != 2 || num_spatial < 1 || num_spatial > 3 ||
        input.element != Element::kReal)
      throw_error<InvalidInput>(
          "input {} must be real, with batch, channels and 1 to 3 spatial axes", to_string(input));
    for (int axis : options_.axes)
      if (axis < 0 || axis >= num_spatial ||
          std::count(options_.axes.begin(), options_.axes.end(), axis) > 1)
        throw_error<InvalidInput>("axes are {}; give spatial axes of {} from 0 to {}, each once",
                                  fmt::join(options_.axes, ", "), to_string(input),
                                  num_spatial - 1);
    if (!options_.keep_axes && !reduces_whole_space())
      throw_error<InvalidInput>(
          "axes {} of {} spatial ones are to be dropped; keep them with size 1, or reduce all",
          fmt::join(options_.axes, ", "), num_spatial);
  }

  /// Indices among all axes of the input.
  std::vector<int64_t> reduced_axes(const ValueType& input) const {
    std::vector<int64_t> axes;
    for (int index = 0; index < input.num_spatial(); ++index)
      if (reduces_whole_space() ||
          std::find(options_.axes.begin(), options_.axes.end(), index) != options_.axes.end())
        axes.push_back(2 + index);
    return axes;
  }

  void refuse_whole_space(const KernelArgs& args) const {
    if (reduces_whole_space())
      throw_error<InternalError>(
          "[{} {}] has no kernels over all of space: the lowering must have rewritten it before it "
          "runs",
          kind(), *args.name);
  }

  SpatialReductionOptions options_;
};

}  // namespace

ValueId spatial_reduction(Graph& graph, ValueId x, const std::string& name,
                          const SpatialReductionOptions& options) {
  std::vector<int> all(graph.type(x).num_spatial());
  std::iota(all.begin(), all.end(), 0);
  SpatialReductionOptions ordered = options;
  std::sort(ordered.axes.begin(), ordered.axes.end());
  if (ordered.axes == all) ordered.axes.clear();
  return graph.add_node(name, std::make_shared<SpatialReduction>(ordered), {x});
}

std::optional<double> whole_space_scale(const Op& op, const NodeTypes& types) {
  const auto* reduction = dynamic_cast<const SpatialReduction*>(&op);
  if (!reduction || !reduction->reduces_whole_space()) return std::nullopt;
  return reduction->scale(types.inputs[0]);
}

}  // namespace tessera
