#include "tessera/ops/loss/dice.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/ops/loss/loss_reference.h"
#include "tessera/ops/loss/pixel_loss.h"

namespace tessera {
namespace {

using DiceActivation = DiceOptions::Activation;

/// Sums over the pixels of one class, of one sample or of the batch: p t, p + t (or p² + t²), 1.
constexpr int64_t kOverlapSize = 3;

class Dice : public PixelLoss {
 public:
  explicit Dice(const DiceOptions& options)
      : PixelLoss(options.weight, options.ignore_index), options_(options) {}

  std::string kind() const override { return "dice"; }
  std::string settings() const override {
    std::string text = options_.activation == DiceActivation::kSigmoid   ? "sigmoid"
                       : options_.activation == DiceActivation::kSoftmax ? "softmax"
                                                                         : "no activation";
    text += per_sample() ? ", per sample" : ", per batch";
    if (options_.squared_denominator) text += ", squared";
    if (!options_.include_background) text += ", without background";
    return with_weight(text);
  }

  Statistics forward_statistics(const NodeTypes& types) const override {
    return {kOverlapSize * num_groups(types), 1 + 2 * num_groups(types)};
  }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    // NaN where a label is not legal, else 0: nobody takes a step with such labels.
    if (has_labels(*args.types)) args.piece_statistics.copy_(sum_over_labels(args) * 0);
    const at::Tensor overlaps = dice_overlaps(terms(), operands(args));
    of_piece(args.piece_statistics, kOverlapSize, args)
        .add_(per_sample() ? overlaps : overlaps.sum(0, /*keepdim=*/true));
  }

  /// Leaves the loss, and what the gradient by a probability p of each group consists of:
  /// pull * t + push (times 2p where squared).
  void merge_statistics(MergeArgs& args) const override {
    const at::Tensor overlaps = args.row.view({-1, kOverlapSize});
    const at::Tensor both = overlaps.select(1, 0), sizes = overlaps.select(1, 1);
    const at::Tensor counts = overlaps.select(1, 2) > 0;
    const at::Tensor factor = weight() / counts.sum(at::kDouble).clamp_min_(1) * counts;
    const at::Tensor denominator = (sizes + options_.smooth).masked_fill_(~counts, 1);
    // 1 - the ratio, without a 1
    args.merged[0].copy_((factor * (sizes - 2 * both) / denominator).sum());
    const at::Tensor pulls = args.merged.narrow(0, 1, args.merged.numel() - 1).view({-1, 2});
    pulls.select(1, 0).copy_(-2 * factor / denominator);
    pulls.select(1, 1).copy_(factor * (2 * both + options_.smooth) / denominator.square());
  }

  void forward(KernelArgs& args) const override {
    const auto pixels = static_cast<double>(Box::whole(args.types->output.shape()).volume());
    const double share = static_cast<double>(args.out_box.volume()) / pixels;
    args.loss.add_(args.merged_statistics[0] * share);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor all = args.merged_statistics.narrow(0, 1, args.merged_statistics.numel() - 1);
    const at::Tensor pulls =
        of_piece(all, 2, args).expand({args.out_box[0].size(), -1, -1}).contiguous();
    dice_gradient(terms(), operands(args), pulls, args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const ReferenceTarget target = reference_target(args, ignore_index());
    at::Tensor p = args.inputs[0];
    if (options_.activation == DiceActivation::kSigmoid) p = at::sigmoid(p);
    if (options_.activation == DiceActivation::kSoftmax) p = at::softmax(p, 1);
    const auto pixels = [&](const at::Tensor& tensor) {  // batch x classes x pixels
      const at::Tensor counted = tensor.masked_fill(target.counts.logical_not(), 0);
      const at::Tensor flat = counted.reshape({tensor.size(0), tensor.size(1), -1});
      return flat.narrow(1, first_class(), tensor.size(1) - first_class());
    };
    p = pixels(p);
    const at::Tensor t = pixels(target.values);
    std::vector<int64_t> axes{2};
    if (!per_sample()) axes.push_back(0);
    const at::Tensor sizes = options_.squared_denominator ? p * p + t * t : p + t;
    const at::Tensor counted = pixels(at::ones_like(args.inputs[0].detach())).sum(axes) > 0;
    const at::Tensor denominator = (sizes.sum(axes) + options_.smooth).masked_fill(~counted, 1);
    const at::Tensor ratio = (2 * (p * t).sum(axes) + options_.smooth) / denominator;
    return weight() * (1 - ratio).masked_fill(~counted, 0).sum() / counted.sum().clamp_min(1);
  }

 protected:
  bool takes(Element) const override { return true; }

  void check_options(const ValueType& prediction) const override {
    if (!(options_.smooth >= 0 && std::isfinite(options_.smooth)))
      throw_error<InvalidInput>("smooth {} must be at least 0 and finite", options_.smooth);
    if (prediction.channels() > 1) return;
    if (options_.activation == DiceActivation::kSoftmax)
      throw_error<InvalidInput>("the softmax of a single channel is 1 everywhere; use sigmoid");
    if (!options_.include_background)
      throw_error<InvalidInput>("nothing is left of a single channel without the background");
  }

 private:
  bool per_sample() const { return options_.average == DiceOptions::Average::kSample; }
  int64_t first_class() const { return options_.include_background ? 0 : 1; }
  int64_t num_classes(const NodeTypes& types) const {
    return types.inputs[0].channels() - first_class();
  }
  int64_t num_groups(const NodeTypes& types) const {
    return num_classes(types) * (per_sample() ? types.output.batch() : 1);
  }
  /// Of so many numbers of each group, those of a piece: its samples, or one row for all, x classes
  /// x numbers.
  at::Tensor of_piece(const at::Tensor& numbers, int64_t of_group, const KernelArgs& args) const {
    const at::Tensor groups = numbers.view({-1, num_classes(*args.types), of_group});
    const Range samples = args.out_box[0];
    return per_sample() ? groups.narrow(0, samples.begin, samples.size()) : groups;
  }

  DiceTerms terms() const {
    return {options_.activation, options_.squared_denominator, first_class()};
  }

  DiceOptions options_;
};

}  // namespace

ValueId dice(Graph& graph, ValueId logits, ValueId target, const std::string& name,
             const DiceOptions& options) {
  return graph.add_node(name, std::make_shared<Dice>(options), {logits, target});
}

}  // namespace tessera
