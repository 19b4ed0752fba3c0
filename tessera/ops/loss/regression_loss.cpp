#include "tessera/ops/loss/regression_loss.h"

#include "tessera/base/error.h"
#include "tessera/ops/loss/mean_loss.h"

namespace tessera {
namespace {

// A measure has a name, legal options, and the oracle's formula.

struct SquaredMeasure {
  const char* kind() const { return "mean_squared_error"; }
  std::string settings() const { return {}; }
  void check() const {}
  ElementLoss element_loss() const { return {ElementLoss::Form::kSquared}; }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::mse_loss(x, t);
  }
};

struct AbsoluteMeasure {
  const char* kind() const { return "mean_absolute_error"; }
  std::string settings() const { return {}; }
  void check() const {}
  ElementLoss element_loss() const { return {ElementLoss::Form::kAbsolute}; }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const { return at::l1_loss(x, t); }
};

struct SmoothAbsoluteMeasure {
  double beta;

  const char* kind() const { return "smooth_l1"; }
  std::string settings() const { return fmt::format("beta {}", beta); }
  void check() const {
    if (!(beta >= 0 && std::isfinite(beta)))
      throw_error<InvalidInput>("beta {} must be at least 0 and finite", beta);
  }
  ElementLoss element_loss() const { return {ElementLoss::Form::kSmoothAbsolute, beta}; }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::smooth_l1_loss(x, t, at::Reduction::Mean, beta);
  }
};

struct HuberMeasure {
  double delta;

  const char* kind() const { return "huber"; }
  std::string settings() const { return fmt::format("delta {}", delta); }
  void check() const {
    if (!(delta > 0 && std::isfinite(delta)))
      throw_error<InvalidInput>("delta {} must be above 0 and finite", delta);
  }
  ElementLoss element_loss() const { return {ElementLoss::Form::kHuber, delta}; }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::huber_loss(x, t, at::Reduction::Mean, delta);
  }
};

template <class Measure>
class RegressionLoss : public MeanLoss {
 public:
  RegressionLoss(const Measure& measure, double weight)
      : MeanLoss(weight, /*ignore_index=*/-100), measure_(measure) {}

  std::string kind() const override { return measure_.kind(); }
  std::string settings() const override { return with_weight(measure_.settings()); }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return weight() * measure_.reference(args.inputs[0], args.inputs[1].detach());
  }

 protected:
  bool takes(Element target) const override { return target == Element::kReal; }
  void check_options(const ValueType&) const override { measure_.check(); }
  ElementLoss element_loss() const override { return measure_.element_loss(); }

 private:
  Measure measure_;
};

template <class Measure>
ValueId add_loss(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
                 const Measure& measure, double weight) {
  return graph.add_node(name, std::make_shared<RegressionLoss<Measure>>(measure, weight),
                        {prediction, target});
}

}  // namespace

ValueId mean_squared_error(Graph& graph, ValueId prediction, ValueId target,
                           const std::string& name, const MeanSquaredErrorOptions& options) {
  return add_loss(graph, prediction, target, name, SquaredMeasure{}, options.weight);
}

ValueId mean_absolute_error(Graph& graph, ValueId prediction, ValueId target,
                            const std::string& name, const MeanAbsoluteErrorOptions& options) {
  return add_loss(graph, prediction, target, name, AbsoluteMeasure{}, options.weight);
}

ValueId smooth_l1(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
                  const SmoothL1Options& options) {
  return add_loss(graph, prediction, target, name, SmoothAbsoluteMeasure{options.beta},
                  options.weight);
}

ValueId huber(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
              const HuberOptions& options) {
  return add_loss(graph, prediction, target, name, HuberMeasure{options.delta}, options.weight);
}

}  // namespace tessera
