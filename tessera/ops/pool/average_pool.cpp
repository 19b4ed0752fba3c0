#include <memory>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/pool/pool_geometry.h"

namespace tessera {
namespace {

class AveragePool final : public Op {
 public:
  explicit AveragePool(const PoolOptions& options) : geometry_(options) {}

  std::string kind() const override { return "average_pool"; }
  std::string settings() const override { return geometry_.settings(); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (int64_t dilation : geometry_.options().dilation)
      if (dilation != 1)
        throw_error<InvalidInput>("dilation {} must be 1; max pooling has dilation", dilation);
    const ValueType output = geometry_.infer_type(inputs[0]);
    if (inputs[0].num_spatial() == 3) check_kernel_fits(inputs[0]);
    return output;
  }
  /// Only PyTorch's 3-D average pooling wants the kernel to fit without the padding.
  void check_kernel_fits(const ValueType& input) const {
    const std::vector<int64_t> kernel = geometry_.kernel(3);
    for (int i = 0; i < 3; ++i)
      if (kernel[i] > input.axes[2 + i].size)
        throw_error<InvalidInput>("kernel {} is larger than the size {} of spatial axis {}",
                                  kernel[i], input.axes[2 + i].size, i);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  bool takes_narrow(Phase, at::DeviceType device) const override { return device != at::kCPU; }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(out.volume() * (geometry_.kernel_volume(types) + 1));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    pool_averages(geometry_.piece(args.out_box, *args.types), divisor(),
                  args.inputs[0].view(needed(0, args.out_box, *args.types)),
                  args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    pool_averages_gradient(geometry_.piece(args.out_box, *args.types), divisor(),
                           args.grad_output.view(args.out_box), args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    at::Tensor x = args.inputs[0];
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    std::vector<int64_t> kernel = geometry_.kernel(num_spatial);
    std::vector<int64_t> stride = geometry_.stride(num_spatial);
    std::vector<int64_t> padding = geometry_.padding(num_spatial);
    if (num_spatial == 1) {  // at::avg_pool1d takes no divisor; a signal is an image of height 1
      x = x.unsqueeze(2);
      kernel.insert(kernel.begin(), 1);
      stride.insert(stride.begin(), 1);
      padding.insert(padding.begin(), 0);
    }
    const PoolOptions& options = geometry_.options();
    const auto average = [&](auto... divisor) {
      return num_spatial == 3 ? at::avg_pool3d(x, kernel, stride, padding, options.ceil_mode,
                                               options.count_include_pad, divisor...)
                              : at::avg_pool2d(x, kernel, stride, padding, options.ceil_mode,
                                               options.count_include_pad, divisor...);
    };
    const at::Tensor y =
        options.divisor_override > 0 ? average(options.divisor_override) : average();
    return num_spatial == 1 ? y.squeeze(2) : y;
  }

  /// None for a signal with a divisor of its own, which PyTorch does not have.
  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    const PoolOptions& options = geometry_.options();
    std::vector<std::string> arguments{args.inputs[0],
                                       script_list(geometry_.kernel(num_spatial)),
                                       script_list(geometry_.stride(num_spatial)),
                                       script_list(geometry_.padding(num_spatial)),
                                       script_bool(options.ceil_mode),
                                       script_bool(options.count_include_pad)};
    if (options.divisor_override > 0) {
      if (num_spatial == 1) return std::nullopt;
      arguments.push_back(std::to_string(options.divisor_override));
    }
    return script_call(fmt::format("torch.avg_pool{}d", num_spatial), arguments);
  }

 private:
  PoolDivisor divisor() const {
    return {geometry_.options().count_include_pad, geometry_.options().divisor_override};
  }

  PoolGeometry geometry_;
};

}  // namespace

ValueId average_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<AveragePool>(options), {x});
}

}  // namespace tessera
