#include "tessera/ops/loss/regression_loss.h"

#include "tessera/base/error.h"
#include "tessera/ops/loss/mean_loss.h"

namespace tessera {
namespace {

double sign(double d) { return static_cast<double>((d > 0) - (d < 0)); }

// An error says what one difference costs, and how that grows with the difference.

struct SquaredError {
  const char* kind() const { return "mean_squared_error"; }
  std::string settings() const { return {}; }
  void check() const {}
  double value(double d) const { return d * d; }
  double slope(double d) const { return 2 * d; }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::mse_loss(x, t);
  }
};

struct AbsoluteError {
  const char* kind() const { return "mean_absolute_error"; }
  std::string settings() const { return {}; }
  void check() const {}
  double value(double d) const { return std::abs(d); }
  double slope(double d) const { return sign(d); }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const { return at::l1_loss(x, t); }
};

struct SmoothAbsoluteError {
  double beta;

  const char* kind() const { return "smooth_l1"; }
  std::string settings() const { return fmt::format("beta {}", beta); }
  void check() const {
    if (!(beta >= 0 && std::isfinite(beta)))
      throw_error<InvalidInput>("beta {} must be at least 0 and finite", beta);
  }
  double value(double d) const {
    return std::abs(d) < beta ? d * d / (2 * beta) : std::abs(d) - beta / 2;
  }
  double slope(double d) const { return std::abs(d) < beta ? d / beta : sign(d); }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::smooth_l1_loss(x, t, at::Reduction::Mean, beta);
  }
};

struct HuberError {
  double delta;

  const char* kind() const { return "huber"; }
  std::string settings() const { return fmt::format("delta {}", delta); }
  void check() const {
    if (!(delta > 0 && std::isfinite(delta)))
      throw_error<InvalidInput>("delta {} must be above 0 and finite", delta);
  }
  double value(double d) const {
    return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
  }
  double slope(double d) const { return std::abs(d) <= delta ? d : delta * sign(d); }
  at::Tensor reference(const at::Tensor& x, const at::Tensor& t) const {
    return at::huber_loss(x, t, at::Reduction::Mean, delta);
  }
};

template <class Error>
class RegressionLoss : public MeanLoss {
 public:
  RegressionLoss(const Error& error, double weight)
      : MeanLoss(weight, /*ignore_index=*/-100), error_(error) {}

  std::string kind() const override { return error_.kind(); }
  std::string settings() const override { return with_weight(error_.settings()); }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return weight() * error_.reference(args.inputs[0], args.inputs[1].detach());
  }

 protected:
  bool takes(Element target) const override { return target == Element::kReal; }
  void check_options(const ValueType&) const override { error_.check(); }
  double tile_sum(LossTile& tile) const override {
    return sum_elements(tile, [&](double x, double t, int64_t) { return error_.value(x - t); });
  }
  void tile_gradient(LossTile& tile) const override {
    set_gradients(tile, [&](double x, double t, int64_t) { return error_.slope(x - t); });
  }

 private:
  Error error_;
};

template <class Error>
ValueId add_loss(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
                 const Error& error, double weight) {
  return graph.add_node(name, std::make_shared<RegressionLoss<Error>>(error, weight),
                        {prediction, target});
}

}  // namespace

ValueId mean_squared_error(Graph& graph, ValueId prediction, ValueId target,
                           const std::string& name, const MeanSquaredErrorOptions& options) {
  return add_loss(graph, prediction, target, name, SquaredError{}, options.weight);
}

ValueId mean_absolute_error(Graph& graph, ValueId prediction, ValueId target,
                            const std::string& name, const MeanAbsoluteErrorOptions& options) {
  return add_loss(graph, prediction, target, name, AbsoluteError{}, options.weight);
}

ValueId smooth_l1(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
                  const SmoothL1Options& options) {
  return add_loss(graph, prediction, target, name, SmoothAbsoluteError{options.beta},
                  options.weight);
}

ValueId huber(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
              const HuberOptions& options) {
  return add_loss(graph, prediction, target, name, HuberError{options.delta}, options.weight);
}

}  // namespace tessera
