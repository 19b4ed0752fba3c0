#include "tessera/ops/global_pool.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

class GlobalAveragePool final : public Op {
 public:
  std::string kind() const override { return "global_average_pool"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.num_axes() < 3 || input.first_spatial() != 2 || input.element != Element::kReal)
      throw_error<InvalidInput>(
          "input {} must be real, with batch, channels and 1 to 3 spatial axes", to_string(input));
    ValueType output = input;
    output.axes.resize(2);
    return output;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = Box::whole(types.inputs[0].shape());
    box[0] = out[0];
    box[1] = out[1];
    return box;
  }

  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

  void forward(KernelArgs& args) const override { refuse(args); }
  void input_gradient(KernelArgs& args) const override { refuse(args); }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0].flatten(2).mean(2);
  }

 private:
  [[noreturn]] static void refuse(const KernelArgs& args) {
    throw_error<InternalError>(
        "[global_average_pool {}] has no kernels: the lowering must have rewritten it before it "
        "runs",
        *args.name);
  }
};

}  // namespace

ValueId global_average_pool(Graph& graph, ValueId x) {
  return graph.add_node("global_average_pool", std::make_shared<GlobalAveragePool>(), {x});
}

}  // namespace tessera
