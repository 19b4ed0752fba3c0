#include "tessera/ops/pool/adaptive_pool.h"

#include <limits>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/pool/adaptive_geometry.h"
#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {
namespace {

class AdaptivePool : public Op {
 public:
  explicit AdaptivePool(const AdaptivePoolOptions& options) : geometry_(options) {}

  std::string settings() const override { return geometry_.settings(); }
  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return geometry_.infer_type(inputs[0]);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

 protected:
  AdaptivePiece piece(const KernelArgs& args) const {
    return geometry_.piece(args.out_box, *args.types);
  }
  at::Tensor input(const KernelArgs& args) const {
    return args.inputs[0].view(needed(0, args.out_box, *args.types));
  }
  static bool wants_gradient(const KernelArgs& args) {
    return !args.out_box.empty() && args.grad_inputs[0].tensor.defined();
  }
  Shape output_space(const at::Tensor& x) const {
    return geometry_.output_space(x.sizes().slice(2).vec());
  }

  AdaptiveGeometry geometry_;
};

class AdaptiveAveragePool final : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;

  std::string kind() const override { return "adaptive_average_pool"; }

  void forward(KernelArgs& args) const override {
    if (!args.out_box.empty())
      pool_adaptive_averages(piece(args), input(args), args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (wants_gradient(args))
      pool_adaptive_averages_gradient(piece(args), args.grad_output.tensor,
                                      args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const Shape size = output_space(x);
    if (size.size() == 1) return at::adaptive_avg_pool1d(x, size);
    return size.size() == 2 ? at::adaptive_avg_pool2d(x, size) : at::adaptive_avg_pool3d(x, size);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    std::vector<std::string> sizes;
    const Shape named = geometry_.output_space(Shape(num_spatial, 0));
    for (int index = 0; index < num_spatial; ++index)
      sizes.push_back(named[index] > 0 ? std::to_string(named[index])
                                       : fmt::format("{}.size({})", args.inputs[0], 2 + index));
    return script_call(fmt::format("torch.adaptive_avg_pool{}d", num_spatial),
                       {args.inputs[0], script_list(sizes)});
  }
};

class AdaptiveMaxPool final : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;

  std::string kind() const override { return "adaptive_max_pool"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType output = AdaptivePool::infer_type(inputs);
    const int64_t window = largest_window({{inputs[0]}, output});
    if (window > std::numeric_limits<int32_t>::max())
      throw_error<InvalidInput>("windows hold {} pixels, more than {}; pool in two steps", window,
                                std::numeric_limits<int32_t>::max());
    return output;
  }
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return {largest_window(types) <= 256 ? at::kByte : at::kInt, out.volume()};
  }

  void forward(KernelArgs& args) const override {
    if (!args.out_box.empty())
      pool_adaptive_maxima(piece(args), input(args), args.output.view(args.out_box), args.saved);
  }

  void input_gradient(KernelArgs& args) const override {
    if (wants_gradient(args))
      pool_adaptive_maxima_gradient(piece(args), args.grad_output.tensor, args.saved,
                                    args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const Shape size = output_space(x);
    const auto pool = size.size() == 1   ? at::adaptive_max_pool1d
                      : size.size() == 2 ? at::adaptive_max_pool2d
                                         : at::adaptive_max_pool3d;
    return std::get<0>(pool(x, size));
  }

 private:
  /// Elements of the largest window.
  int64_t largest_window(const NodeTypes& types) const {
    int64_t volume = 1;
    for (const AdaptiveAxis& axis : geometry_.piece(Box::whole(types.output.shape()), types))
      volume *= axis.largest_window();
    return volume;
  }
};

}  // namespace

ValueId adaptive_average_pool(Graph& graph, ValueId x, const std::string& name,
                              const AdaptivePoolOptions& options) {
  const Shape one_per_axis(graph.type(x).num_spatial(), 1);
  if (options.size == Shape{1} || options.size == one_per_axis)
    return spatial_reduction(graph, x, name, {});
  return graph.add_node(name, std::make_shared<AdaptiveAveragePool>(options), {x});
}

ValueId adaptive_max_pool(Graph& graph, ValueId x, const std::string& name,
                          const AdaptivePoolOptions& options) {
  return graph.add_node(name, std::make_shared<AdaptiveMaxPool>(options), {x});
}

}  // namespace tessera
