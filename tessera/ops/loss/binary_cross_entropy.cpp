#include "tessera/ops/loss/binary_cross_entropy.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/loss/loss_reference.h"
#include "tessera/ops/loss/mean_loss.h"

namespace tessera {
namespace {

class BinaryCrossEntropy : public MeanLoss {
 public:
  explicit BinaryCrossEntropy(const BinaryCrossEntropyOptions& options)
      : MeanLoss(options.weight, options.ignore_index), pos_weight_(options.pos_weight) {}

  std::string kind() const override { return "binary_cross_entropy"; }
  std::string settings() const override {
    return with_weight(pos_weight_.empty() ? "" : "pos_weight " + slashed(pos_weight_));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const ReferenceTarget target = reference_target(args, ignore_index());
    at::Tensor pos_weight;
    if (!pos_weight_.empty()) {
      Shape shape(x.dim(), 1);
      shape[1] = std::ssize(pos_weight_);
      pos_weight = at::tensor(pos_weight_, x.options()).view(shape).expand_as(x);
      pos_weight = those_that_count(pos_weight, target);
    }
    return weight() * at::binary_cross_entropy_with_logits(those_that_count(x, target),
                                                           those_that_count(target.values, target),
                                                           {}, pos_weight, at::Reduction::Mean);
  }

 protected:
  bool takes(Element) const override { return true; }

  void check_options(const ValueType& prediction) const override {
    const int64_t channels = prediction.channels(), given = std::ssize(pos_weight_);
    if (given > 1 && given != channels)
      throw_error<InvalidInput>("{} pos_weights for {}; give none, one, or one per channel", given,
                                counted(channels, "channel"));
    for (double factor : pos_weight_)
      if (!(factor >= 0 && std::isfinite(factor)))
        throw_error<InvalidInput>("pos_weight {} must be at least 0 and finite", factor);
  }

  ElementLoss element_loss() const override {
    return {ElementLoss::Form::kLogistic, 0, -1, pos_weight_};
  }

 private:
  std::vector<double> pos_weight_;
};

}  // namespace

ValueId binary_cross_entropy(Graph& graph, ValueId logits, ValueId target, const std::string& name,
                             const BinaryCrossEntropyOptions& options) {
  return graph.add_node(name, std::make_shared<BinaryCrossEntropy>(options), {logits, target});
}

}  // namespace tessera
