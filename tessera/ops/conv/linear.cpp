#include "tessera/ops/conv/linear.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/convolution.h"
#include "tessera/kernels/linear.h"
#include "tessera/ops/conv/convolution_op.h"

namespace tessera {
namespace {

bool has_features(const ValueType& type) {
  return type.num_axes() >= 2 && type.axes[0].kind == AxisKind::kBatch &&
         type.axes[1].kind == AxisKind::kChannel && type.element == Element::kReal;
}

/// A weight [out, in] as that of a 1x1 convolution over the axes of `x`.
at::Tensor as_kernel(const at::Tensor& weight, const at::Tensor& x) {
  std::vector<int64_t> shape{weight.size(0), weight.size(1)};
  shape.resize(x.dim(), 1);
  return weight.view(shape);
}

ConvolutionShape each_pixel(const at::Tensor& x) {
  const std::vector<int64_t> ones(x.dim() - 2, 1);
  return {ones, ones};
}

class Linear final : public Op {
 public:
  explicit Linear(const LinearOptions& options) : options_(options) {}

  std::string kind() const override { return "linear"; }
  std::string settings() const override { return options_.bias ? "" : "without bias"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (!has_features(input))
      throw_error<InvalidInput>("input {} must be real, with batch and channels first; flatten it",
                                to_string(input));
    if (options_.out_features < 1)
      throw_error<InvalidInput>("out_features must be at least 1, got {}", options_.out_features);
    ValueType output = input;
    output.axes[1].size = options_.out_features;
    return output;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    box[1] = {0, types.inputs[0].channels()};
    return box;
  }
  InputAccess input_access(int) const override { return InputAccess::kDense; }
  bool keeps_input(int) const override { return true; }
  double flops(const Box& out, const NodeTypes& types) const override {
    return 2.0 * static_cast<double>(out.volume() * types.inputs[0].channels());
  }
  double elements_moved(const Box& out, const NodeTypes& types) const override {
    const int64_t weight = options_.out_features * types.inputs[0].channels();
    return Op::elements_moved(out, types) +
           static_cast<double>(weight + (options_.bias ? options_.out_features : 0));
  }
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    const bool is_matrix = out.num_axes() == 2;
    if (is_matrix || !is_product(phase)) return 0;
    return convolution_scratch_bytes({}, {options_.out_features, types.inputs[0].channels()},
                                     numbers.type, numbers.device);
  }

  void forward(KernelArgs& args) const override {
    const at::Tensor& x = args.inputs[0].tensor;
    const at::Tensor& weight = args.parameters[0];
    if (x.dim() > 2)
      convolve(each_pixel(x), x, as_kernel(weight, x),
               options_.bias ? args.parameters[1] : at::Tensor(), args.output.tensor, args.scratch);
    else
      linear_product(x, weight, options_.bias ? args.parameters[1] : at::Tensor(),
                     args.output.tensor);
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor &grad = args.grad_output.tensor, &weight = args.parameters[0];
    if (grad.dim() > 2)
      convolve_transposed(each_pixel(grad), grad, as_kernel(weight, grad), {},
                          args.grad_inputs[0].tensor, args.scratch);
    else
      linear_input_gradient(grad, weight, args.grad_inputs[0].tensor);
  }

  void weight_gradient(KernelArgs& args) const override {
    const at::Tensor &grad = args.grad_output.tensor, &x = args.inputs[0].tensor;
    if (grad.dim() > 2)
      add_convolution_weight_gradient(each_pixel(x), x, grad, as_kernel(args.grad_parameters[0], x),
                                      args.scratch);
    else
      add_linear_weight_gradient(x, grad, args.grad_parameters[0]);
    if (!options_.bias) return;
    std::vector<int64_t> summed{0};
    for (int64_t axis = 2; axis < grad.dim(); ++axis) summed.push_back(axis);
    args.grad_parameters[1].add_(grad.sum(summed));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor y = at::linear(args.inputs[0].movedim(1, -1), args.parameters[0],
                                    options_.bias ? args.parameters[1] : at::Tensor());
    return y.movedim(-1, 1);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    const bool has_space = args.types->inputs[0].num_axes() > 2;
    const std::string& x = args.inputs[0];
    const std::string y =
        script_call("torch.linear", {has_space ? script_call("torch.movedim", {x, "1", "-1"}) : x,
                                     args.parameters[0], script_or_none(args.parameters, 1)});
    return has_space ? script_call("torch.movedim", {y, "-1", "1"}) : y;
  }

 private:
  LinearOptions options_;
};

}  // namespace

std::vector<ParameterId> add_weight_and_bias(Graph& graph, const std::string& name,
                                             const Shape& weight_shape, int64_t bias_size) {
  int64_t fan_in = 1;
  for (size_t axis = 1; axis < weight_shape.size(); ++axis) fan_in *= weight_shape[axis];
  const Initial initial{Initial::Kind::kUniform, 1 / std::sqrt(static_cast<double>(fan_in))};
  std::vector<ParameterId> ids{
      graph.add_parameter({name + ".weight", weight_shape, ParameterRole::kTrainable, initial})};
  if (bias_size > 0)
    ids.push_back(
        graph.add_parameter({name + ".bias", {bias_size}, ParameterRole::kTrainable, initial}));
  return ids;
}

ValueId linear(Graph& graph, ValueId x, const std::string& name, const LinearOptions& options) {
  const ValueType& type = graph.type(x);
  // Other inputs have no number of features; add_node() then refuses them.
  const int64_t in_features = has_features(type) ? type.channels() : 1;
  const std::vector<ParameterId> parameters = add_weight_and_bias(
      graph, name, {options.out_features, in_features}, options.bias ? options.out_features : 0);
  return graph.add_node(name, std::make_shared<Linear>(options), {x}, parameters);
}

}  // namespace tessera
