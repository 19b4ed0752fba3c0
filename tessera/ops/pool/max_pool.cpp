#include <memory>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/pool/pool_geometry.h"

namespace tessera {
namespace {

class MaxPool final : public Op {
 public:
  explicit MaxPool(const PoolOptions& options) : geometry_(options) {}

  std::string kind() const override { return "max_pool"; }
  std::string settings() const override { return geometry_.settings(); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return geometry_.infer_type(inputs[0]);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  /// For each output, the tap of its window that holds the maximum.
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return {geometry_.kernel_volume(types) <= 255 ? at::kByte : at::kInt, out.volume()};
  }
  /// Where windows overlap, gradients are added up, and the CPU's loops round each addition.
  bool takes_narrow(Phase phase, at::DeviceType device) const override {
    return phase != Phase::kInputGradient || device != at::kCPU || !geometry_.windows_overlap();
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(out.volume() * geometry_.kernel_volume(types));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    pool_maxima(geometry_.piece(args.out_box, *args.types),
                args.inputs[0].view(needed(0, args.out_box, *args.types)),
                args.output.view(args.out_box), args.saved);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    pool_maxima_gradient(geometry_.piece(args.out_box, *args.types),
                         args.grad_output.view(args.out_box), args.saved,
                         args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    const auto pool = num_spatial == 1   ? at::max_pool1d
                      : num_spatial == 2 ? at::max_pool2d
                                         : at::max_pool3d;
    return pool(x, geometry_.kernel(num_spatial), geometry_.stride(num_spatial),
                geometry_.padding(num_spatial), geometry_.dilation(num_spatial),
                geometry_.options().ceil_mode);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    return script_call(
        fmt::format("torch.max_pool{}d", num_spatial),
        {args.inputs[0], script_list(geometry_.kernel(num_spatial)),
         script_list(geometry_.stride(num_spatial)), script_list(geometry_.padding(num_spatial)),
         script_list(geometry_.dilation(num_spatial)), script_bool(geometry_.options().ceil_mode)});
  }

 private:
  PoolGeometry geometry_;
};

}  // namespace

ValueId max_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<MaxPool>(options), {x});
}

}  // namespace tessera
