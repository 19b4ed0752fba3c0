#include "tessera/ops/loss/focal.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/loss/logistic.h"
#include "tessera/ops/loss/loss_reference.h"
#include "tessera/ops/loss/mean_loss.h"

namespace tessera {
namespace {

void check_gamma(double gamma) {
  if (!(gamma >= 0 && std::isfinite(gamma)))
    throw_error<InvalidInput>("gamma {} must be at least 0 and finite", gamma);
}

/// base^gamma, with a short cut for the usual exponent.
double power(double base, double gamma) { return gamma == 2 ? base * base : std::pow(base, gamma); }

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

  double tile_sum(LossTile& tile) const override {
    return sum_elements(tile, [&](double x, double t, int64_t) {
      const Logistic p(x);
      return balance(t) * power(wrong(p, t), options_.gamma) * cross_entropy(x, p, t);
    });
  }

  /// With m = wrong(p, t) and c the cross entropy: m^gamma (c' + gamma c m'/m).
  void tile_gradient(LossTile& tile) const override {
    set_gradients(tile, [&](double x, double t, int64_t) {
      const Logistic p(x);
      const double yes = p.yes(), no = p.no(), m = wrong(p, t);
      // m'/m, in the form that stays finite where m underflows; that needs t = 0 or 1.
      const double growth = t == 0 ? no : t == 1 ? -yes : yes * no * (1 - 2 * t) / m;
      const double slope = (1 - t) * yes - t * no;
      return balance(t) * power(m, options_.gamma) *
             (slope + options_.gamma * cross_entropy(x, p, t) * growth);
    });
  }

 private:
  bool has_alpha() const { return options_.alpha >= 0; }
  double balance(double t) const {
    return has_alpha() ? options_.alpha * t + (1 - options_.alpha) * (1 - t) : 1;
  }
  static double wrong(const Logistic& p, double t) { return (1 - t) * p.yes() + t * p.no(); }
  static double cross_entropy(double x, const Logistic& p, double t) {
    return (1 - t) * x + p.minus_log_yes();
  }

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

  double tile_sum(LossTile& tile) const override {
    double sum = 0;
    for_each_pixel(tile, [&](int64_t, double factor, double wrong, double minus_log, double) {
      sum += factor * power(wrong, options_.gamma) * minus_log;
    });
    return sum;
  }

  /// With u = 1 - q_t and L = -log q_t: (q_k - [k = t]) u^gamma (1 + gamma q_t L/u), where L/u
  /// tends to 1 as u goes to 0.
  void tile_gradient(LossTile& tile) const override {
    for_each_pixel(tile, [&](int64_t p, double factor, double u, double minus_log, double sum) {
      const double steepness = u > 0 ? minus_log / u : 1;
      factor *= power(u, options_.gamma) * (1 + options_.gamma * (1 - u) * steepness);
      for (int64_t k = 0; k < tile.num_channels; ++k) {
        double& entry = tile.gradients[k * tile.max_size + p];
        entry = factor * (k == tile.labels[p] ? -u : entry / sum);
      }
    });
  }

 private:
  /// Calls body(pixel, class weight, 1 - q_t, -log q_t, sum of exponentials) for the pixels that
  /// count; tile.gradients then holds the exponentials.
  template <class Body>
  void for_each_pixel(LossTile& tile, const Body& body) const {
    const TileSoftmax softmax(tile, tile.num_channels, [&](int64_t k, int64_t p, double value) {
      tile.gradients[k * tile.max_size + p] = value;
    });
    for (int64_t p = 0; p < tile.size; ++p) {
      if (!tile.counts[p]) continue;
      const int64_t label = tile.labels[p];
      double others = 0;
      for (int64_t k = 0; k < tile.num_channels; ++k)
        if (k != label) others += tile.gradients[k * tile.max_size + p];
      const double wrong = others / softmax.sum[p];
      const double minus_log =
          wrong < 0.5 ? -std::log1p(-wrong)
                      : std::log(softmax.sum[p]) - (tile.logit(label, p) - softmax.max[p]);
      const double factor = options_.class_weights.empty() ? 1 : options_.class_weights[label];
      body(p, factor, wrong, minus_log, softmax.sum[p]);
    }
  }

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
