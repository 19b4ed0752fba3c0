#include "tessera/ops/loss/focal.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/loss/loss_reference.h"
#include "tessera/ops/loss/mean_loss.h"

namespace tessera {
namespace {

void check_gamma(double gamma) {
  if (!(gamma >= 0 && std::isfinite(gamma)))
    throw_error<InvalidInput>("gamma {} must be at least 0 and finite", gamma);
}

class SigmoidFocal : public MeanLoss {
 public:
  explicit SigmoidFocal(const FocalOptions& options)
      : MeanLoss(options.weight, options.ignore_index), options_(options) {}

  std::string kind() const override { return "sigmoid_focal"; }
  std::string settings() const override {
    const std::string alpha = has_alpha() ? fmt::format(", alpha {}", options_.alpha) : "";
    return with_weight(fmt::format("gamma {}{}", options_.gamma, alpha));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const ReferenceTarget target = reference_target(args, ignore_index());
    const at::Tensor x = those_that_count(args.inputs[0], target);
    const at::Tensor t = those_that_count(target.values, target);
    const at::Tensor p = at::sigmoid(x);
    const at::Tensor right = p * t + (1 - p) * (1 - t);
    at::Tensor loss = at::binary_cross_entropy_with_logits(x, t, {}, {}, at::Reduction::None) *
                      at::pow(1 - right, options_.gamma);
    if (has_alpha()) loss = loss * (options_.alpha * t + (1 - options_.alpha) * (1 - t));
    return weight() * loss.mean();
  }

 protected:
  bool takes(Element) const override { return true; }

  void check_options(const ValueType&) const override {
    check_gamma(options_.gamma);
    if (!(options_.alpha <= 1))
      throw_error<InvalidInput>("alpha {} must be in [0, 1], or negative for none", options_.alpha);
    if (!options_.class_weights.empty())
      throw_error<InvalidInput>("class weights belong to the softmax form; give alpha");
  }

  ElementLoss element_loss() const override {
    return {ElementLoss::Form::kSigmoidFocal, options_.gamma, options_.alpha};
  }

 private:
  bool has_alpha() const { return options_.alpha >= 0; }

  FocalOptions options_;
};

class SoftmaxFocal : public MeanLoss {
 public:
  explicit SoftmaxFocal(const FocalOptions& options)
      : MeanLoss(options.weight, options.ignore_index), options_(options) {}

  std::string kind() const override { return "softmax_focal"; }
  std::string settings() const override {
    const std::string weights =
        options_.class_weights.empty() ? "" : ", class weights " + slashed(options_.class_weights);
    return with_weight(fmt::format("gamma {}{}", options_.gamma, weights));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor counts = args.inputs[1] != ignore_index();
    const at::Tensor labels = args.inputs[1].masked_select(counts).unsqueeze(1);
    const at::Tensor pixels = args.inputs[0].movedim(1, -1).index({counts});
    const at::Tensor log_q = at::log_softmax(pixels, 1).gather(1, labels);
    at::Tensor loss = -at::pow(1 - at::exp(log_q), options_.gamma) * log_q;
    if (!options_.class_weights.empty())
      loss = loss * at::tensor(options_.class_weights, pixels.options()).index({labels});
    return weight() * loss.mean();
  }

 protected:
  bool takes(Element target) const override { return target == Element::kIndex; }
  int64_t num_labels(int64_t channels) const override { return channels; }
  int64_t terms_per_pixel(int64_t) const override { return 1; }

  void check_options(const ValueType& prediction) const override {
    check_gamma(options_.gamma);
    if (options_.alpha >= 0)
      throw_error<InvalidInput>("alpha belongs to the sigmoid form; give class weights");
    const int64_t given = std::ssize(options_.class_weights);
    if (given != 0 && given != prediction.channels())
      throw_error<InvalidInput>("{} for {}; give one per class, or none",
                                counted(given, "class weight"),
                                counted(prediction.channels(), "class", "classes"));
  }

  ElementLoss element_loss() const override {
    return {ElementLoss::Form::kSoftmaxFocal, options_.gamma, -1, options_.class_weights};
  }

 private:
  FocalOptions options_;
};

}  // namespace

ValueId focal(Graph& graph, ValueId logits, ValueId target, const std::string& name,
              const FocalOptions& options) {
  if (options.form == FocalOptions::Form::kSigmoid)
    return graph.add_node(name, std::make_shared<SigmoidFocal>(options), {logits, target});
  return graph.add_node(name, std::make_shared<SoftmaxFocal>(options), {logits, target});
}

}  // namespace tessera
