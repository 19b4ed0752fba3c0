// One's own operator: a learned blur. Every channel is replaced by
//
//     y = x + weight * (left neighbour + right neighbour - 2 x)      along the last axis
//
// with zeros outside of the image. The operator says which box of its input a box of its output
// needs, and computes any box; it knows nothing of workers. Tessera cuts it, exchanges the halo,
// and proves it against reference(), which is plain PyTorch under autograd.

#include <tessera/tessera.h>

using namespace tessera;

class LearnedBlur final : public Op {
 public:
  std::string kind() const override { return "learned_blur"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override { return inputs[0]; }

  /// One pixel more on either side. It may leave the image: a dense input has zeros there.
  Box needed(int, const Box& out, const NodeTypes&) const override {
    Box box = out;
    Range& last = box[box.num_axes() - 1];
    if (!out.empty()) last = {last.begin - 1, last.end + 1};
    return box;
  }
  InputAccess input_access(int) const override { return InputAccess::kDense; }
  bool keeps_input(int) const override { return true; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor& x = args.inputs[0].tensor;
    args.output.view(args.out_box).copy_(middle(x) + args.parameters[0] * curvature(x));
  }

  /// The gradient of all that forward has read, halo included; Tessera sends it to its owners.
  void input_gradient(KernelArgs& args) const override {
    const at::Tensor dy = args.grad_output.view(args.out_box);
    const at::Tensor& dx = args.grad_inputs[0].tensor;
    dx.zero_();
    if (!args.out_box.empty()) {
      const at::Tensor side = args.parameters[0] * dy;
      const int64_t columns = dy.size(-1);
      dx.narrow(-1, 1, columns).add_(dy - 2 * side);
      dx.narrow(-1, 0, columns).add_(side);
      dx.narrow(-1, 2, columns).add_(side);
    }
  }

  void weight_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor dy = args.grad_output.view(args.out_box);
    args.grad_parameters[0].add_((dy * curvature(args.inputs[0].tensor)).sum());
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor padded = at::constant_pad_nd(args.inputs[0], {1, 1});
    return middle(padded) + args.parameters[0] * curvature(padded);
  }

 private:
  static at::Tensor middle(const at::Tensor& x) { return x.narrow(-1, 1, x.size(-1) - 2); }
  static at::Tensor curvature(const at::Tensor& x) {
    const int64_t columns = x.size(-1) - 2;
    return x.narrow(-1, 0, columns) + x.narrow(-1, 2, columns) - 2 * middle(x);
  }
};

ValueId learned_blur(Graph& graph, ValueId x, const std::string& name) {
  const ParameterId weight = graph.add_parameter(
      {name + ".weight", {1}, ParameterRole::kTrainable, {Initial::Kind::kConstant, 0.25}});
  return graph.add_node(name, std::make_shared<LearnedBlur>(), {x}, {weight});
}

int main() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 3, 17, 23}));
  for (const char* layer :
       {"1", "2"}) {  // two layers: one alone would hide a missing halo gradient
    x = convolution(graph, x, std::string("conv") + layer,
                    {.out_channels = 6, .kernel = {3}, .padding = {1}});
    x = relu(graph, learned_blur(graph, x, std::string("blur") + layer),
             std::string("relu") + layer);
  }
  graph.mark_output(x);
  add_losses(graph, {.spec = "cross_entropy"});

  Job job = make_job(graph);
  job.real = at::kDouble;
  for (const std::vector<int64_t>& grid : {std::vector<int64_t>{1, 4}, {2, 3}, {1, 23}}) {
    job.plan.space = grid;
    const VerifyReport report = verify(job);
    fmt::print("{:>2} workers: {}\n", report.ranks, report.ok ? "the same numbers" : report.worst);
    if (!report.ok) return 1;
  }
  return 0;
}
