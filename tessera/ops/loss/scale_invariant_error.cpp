#include "tessera/ops/loss/scale_invariant_error.h"

#include "tessera/base/error.h"
#include "tessera/kernels/differences.h"
#include "tessera/ops/loss/pixel_loss.h"

namespace tessera {
namespace {

class ScaleInvariantError final : public PixelLoss {
 public:
  explicit ScaleInvariantError(const ScaleInvariantOptions& options)
      : PixelLoss(/*weight=*/1, /*ignore_index=*/-100), weight_(options.weight) {}

  std::string kind() const override { return "scale_invariant_error"; }
  std::string settings() const override { return "weight " + to_string(weight_); }
  bool depends_on_step() const override { return true; }

  Statistics forward_statistics(const NodeTypes& types) const override {
    return {kNumbersPerCell * types.output.batch(), 1 + types.output.batch()};
  }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    const Range samples = args.out_box[0];
    difference_moments(
        operands(args),
        cells_of_row(args.piece_statistics).narrow(0, samples.begin, samples.size()));
  }

  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    combine_moments(rows, combined);
  }

  /// Leaves the loss, and each image's mean difference.
  void merge_statistics(MergeArgs& args) const override {
    const at::Tensor moments = cells_of_row(args.row);
    args.merged[0].copy_((squares_in(moments) / counts_in(moments)).mean());
    args.merged.narrow(0, 1, moments.size(0)).copy_(means_in(moments));
  }

  void forward(KernelArgs& args) const override {
    const Box whole = Box::whole(args.types->output.shape());
    const double share =
        static_cast<double>(args.out_box.volume()) / static_cast<double>(whole.volume());
    args.loss.add_(args.merged_statistics[0] * (weight_.at(args.step) * share));
  }

  /// 2 (d - mean d) / k of each image.
  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const Range samples = args.out_box[0];
    const at::Tensor means = args.merged_statistics.narrow(0, 1 + samples.begin, samples.size());
    const Box whole = Box::whole(args.types->inputs[0].shape());
    const double factor = 2 * weight_.at(args.step) / static_cast<double>(whole.volume());
    centred_difference(operands(args), factor, means, args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor d = (args.inputs[0] - args.inputs[1].detach()).flatten(1);
    const at::Tensor apart = d - d.mean(1, /*keepdim=*/true);
    return weight_.at(args.step) * (apart * apart).mean();
  }

 protected:
  bool takes(Element target) const override { return target == Element::kReal; }
  void check_options(const ValueType&) const override { check_step_function(weight_, "weight"); }

 private:
  StepFunction weight_;
};

}  // namespace

ValueId scale_invariant_error(Graph& graph, ValueId prediction, ValueId target,
                              const std::string& name, const ScaleInvariantOptions& options) {
  return graph.add_node(name, std::make_shared<ScaleInvariantError>(options), {prediction, target});
}

}  // namespace tessera
