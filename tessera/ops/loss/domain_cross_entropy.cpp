#include "tessera/ops/loss/domain_cross_entropy.h"

#include "tessera/base/error.h"
#include "tessera/ops/loss/feature_loss.h"

namespace tessera {
namespace {

class DomainCrossEntropy final : public FeatureLoss {
 public:
  DomainCrossEntropy(int64_t domain, const DomainCrossEntropyOptions& options)
      : FeatureLoss(options.weight), domain_(domain) {}

  std::string kind() const override { return "domain_cross_entropy"; }
  std::string settings() const override { return with_weight(fmt::format("domain {}", domain_)); }
  double flops(const Box& out, const NodeTypes& types) const override {
    return 4.0 * static_cast<double>(out.volume() * types.inputs[0].channels());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor log_share = at::log_softmax(logits(args), 1).select(1, domain_);
    args.loss.sub_(log_share.sum() * factor(args));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    at::Tensor gradient = at::softmax(logits(args), 1);
    gradient.select(1, domain_).sub_(1);
    args.grad_inputs[0].tensor.copy_(gradient.mul_(factor(args)));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return -weight_at(args.step) * at::log_softmax(args.inputs[0], 1).select(1, domain_).mean();
  }

 protected:
  void check_inputs(std::span<const ValueType> inputs) const override {
    const int64_t domains = inputs[0].channels();
    if (domains < 2)
      throw_error<InvalidInput>("the logits have {} channel; give one for each domain", domains);
    if (domain_ < 0 || domain_ >= domains)
      throw_error<InvalidInput>("domain {} is not one of the {} of the logits; give 0 to {}",
                                domain_, domains, domains - 1);
  }

 private:
  at::Tensor logits(const KernelArgs& args) const {
    return args.inputs[0].view(needed(0, args.out_box, *args.types)).to(at::kDouble);
  }
  double factor(const KernelArgs& args) const {
    const Box whole = Box::whole(args.types->output.shape());
    return weight_at(args.step) / static_cast<double>(whole.volume());
  }

  int64_t domain_;
};

}  // namespace

ValueId domain_cross_entropy(Graph& graph, ValueId logits, int64_t domain, const std::string& name,
                             const DomainCrossEntropyOptions& options) {
  return graph.add_node(name, std::make_shared<DomainCrossEntropy>(domain, options), {logits});
}

}  // namespace tessera
