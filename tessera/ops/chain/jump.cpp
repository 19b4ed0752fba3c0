#include "tessera/ops/chain/jump.h"

#include <c10/core/GradMode.h>

#include <cmath>

#include "tessera/graph/step_numbers.h"
#include "tessera/kernels/loss.h"

namespace tessera {
namespace {

constexpr Range kNumbers{1, 3};  // of the step

class Jump final : public Measurement {
 public:
  std::string kind() const override { return "jump"; }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  Range step_numbers() const override { return kNumbers; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 5 * static_cast<double>(out.volume());
  }
  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor arrived = args.inputs[0].view(args.out_box);
    const at::Tensor start = args.inputs[1].view(args.out_box);
    const at::Tensor zeros = at::zeros({1}, start.options()).expand_as(start);
    args.loss[0].add_(loss_sum({}, {arrived, start}));
    args.loss[1].add_(loss_sum({}, {start, zeros}));
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    c10::NoGradGuard no_gradients;
    const at::Tensor arrived = args.inputs[0].to(at::kDouble),
                     start = args.inputs[1].to(at::kDouble);
    return at::stack({(arrived - start).square().sum(), start.square().sum()});
  }
};

}  // namespace

void measure_jump(Graph& graph, ValueId arrived, ValueId start, const std::string& name) {
  graph.add_node(name, std::make_shared<Jump>(), {arrived, start});
}

std::optional<double> relative_jump(const std::vector<double>& measured) {
  if (std::ssize(measured) < kNumbers.size()) return std::nullopt;
  return measured[0] == 0 ? 0 : std::sqrt(measured[0] / measured[1]);
}

}  // namespace tessera
