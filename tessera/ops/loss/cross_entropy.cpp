#include "tessera/ops/loss/cross_entropy.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/kernels/cross_entropy.h"
#include "tessera/ops/loss/pixel_loss.h"

namespace tessera {
namespace {

class CrossEntropy : public PixelLoss {
 public:
  explicit CrossEntropy(const CrossEntropyOptions& options)
      : PixelLoss(options.weight, options.ignore_index),
        options_(options),
        terms_{options.class_weights, options.label_smoothing, options.ignore_index} {}

  std::string kind() const override { return "cross_entropy"; }
  std::string settings() const override {
    std::string text;
    if (!options_.class_weights.empty()) text = "class weights " + slashed(options_.class_weights);
    if (options_.label_smoothing > 0)
      text += fmt::format("{}smoothing {}", text.empty() ? "" : ", ", options_.label_smoothing);
    return with_weight(text);
  }

  /// The CPU's loops read wide numbers alone.
  bool takes_narrow(Phase, at::DeviceType device) const override { return device != at::kCPU; }
  Statistics forward_statistics(const NodeTypes&) const override { return {1, 1}; }

  bool statistics_read(int input) const override { return input == 1; }
  /// The piece's part of the denominator.
  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.copy_(sum_over_labels(args, options_.class_weights));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const LossOperands piece = operands(args);
    const at::Tensor sum = cross_entropy_sum(terms_, piece.scores, piece.target);
    args.loss.add_(sum * weight() / args.merged_statistics[0]);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const LossOperands piece = operands(args);
    cross_entropy_gradient(terms_, weight() / args.merged_statistics[0], piece.scores, piece.target,
                           args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& logits = args.inputs[0];
    at::Tensor weights;
    if (!options_.class_weights.empty())
      weights = at::tensor(options_.class_weights, at::kDouble).to(logits.scalar_type());
    return weight() * at::cross_entropy_loss(logits, args.inputs[1], weights, at::Reduction::Mean,
                                             ignore_index(), options_.label_smoothing);
  }

 protected:
  bool takes(Element target) const override { return target == Element::kIndex; }
  int64_t num_labels(int64_t channels) const override { return channels; }

  void check_options(const ValueType& logits) const override {
    const auto num_classes = static_cast<size_t>(logits.channels());
    if (!options_.class_weights.empty() && options_.class_weights.size() != num_classes)
      throw_error<InvalidInput>("{} for {}; give one per class, or none",
                                counted(std::ssize(options_.class_weights), "class weight"),
                                counted(logits.channels(), "class", "classes"));
    if (!(options_.label_smoothing >= 0 && options_.label_smoothing <= 1))
      throw_error<InvalidInput>("label_smoothing {} must be in [0, 1]", options_.label_smoothing);
  }

 private:
  CrossEntropyOptions options_;
  CrossEntropyTerms terms_;
};

}  // namespace

ValueId cross_entropy(Graph& graph, ValueId logits, ValueId target, const std::string& name,
                      const CrossEntropyOptions& options) {
  return graph.add_node(name, std::make_shared<CrossEntropy>(options), {logits, target});
}

}  // namespace tessera
