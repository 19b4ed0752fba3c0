#include "tests/ranks/engine/random_losses.h"

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/binary_cross_entropy.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/loss/focal.h"
#include "tessera/ops/loss/regression_loss.h"

namespace tessera {
namespace {

class LossMaker {
 public:
  LossMaker(Graph& graph, ValueId x, const std::string& name, Draw& draw)
      : graph_(graph), x_(x), name_(name), draw_(draw) {}

  void make() {
    weight_ = draw_.chance(0.5) ? 1 : draw_.real(0.2, 2);
    switch (draw_.integer(0, 5)) {
      case 0:
        return add_cross_entropy();
      case 1:
        return add_binary_cross_entropy();
      case 2:
        return add_dice();
      case 3:
        return add_focal(FocalOptions::Form::kSigmoid);
      case 4:
        return add_focal(FocalOptions::Form::kSoftmax);
      default:
        return add_regression();
    }
  }

 private:
  void add_head(int64_t channels) {
    channels_ = channels;
    logits_ = convolution(graph_, x_, name_, {channels, {1}});
    graph_.mark_output(logits_);
  }
  ValueId labels() { return add_target(graph_, logits_, name_ + "_target"); }
  ValueId reals() { return add_real_target(graph_, logits_, name_ + "_target"); }
  ValueId any_target() { return draw_.chance(0.5) ? labels() : reals(); }
  std::string loss_name() const { return name_ + "_loss"; }

  std::vector<double> class_factors() {
    std::vector<double> factors;
    if (draw_.chance(0.6)) return factors;
    for (int64_t i = 0; i < channels_; ++i) factors.push_back(draw_.real(0.5, 2));
    return factors;
  }

  /// A label of the noise is ignored only where enough others are sure to be left.
  int64_t ignored_label() {
    const int64_t pixels = Box::whole(graph_.type(logits_).shape()).volume() / channels_;
    return pixels >= 30 && draw_.chance(0.3) ? 0 : -100;
  }

  void add_cross_entropy() {
    add_head(draw_.integer(2, 4));
    cross_entropy(graph_, logits_, labels(), loss_name(),
                  {.class_weights = class_factors(),
                   .ignore_index = ignored_label(),
                   .label_smoothing = draw_.chance(0.3) ? 0.1 : 0,
                   .weight = weight_});
  }

  void add_binary_cross_entropy() {
    add_head(draw_.integer(1, 3));
    binary_cross_entropy(
        graph_, logits_, any_target(), loss_name(),
        {.pos_weight = class_factors(), .ignore_index = ignored_label(), .weight = weight_});
  }

  void add_dice() {
    add_head(draw_.integer(1, 4));
    DiceOptions options;
    if (channels_ > 1 && draw_.chance(0.5)) options.activation = DiceOptions::Activation::kSoftmax;
    options.smooth = draw_.one_of<double>({1e-5, 1});
    options.squared_denominator = draw_.chance(0.3);
    if (draw_.chance(0.5)) options.average = DiceOptions::Average::kBatch;
    options.include_background = channels_ == 1 || draw_.chance(0.7);
    options.ignore_index = ignored_label();
    options.weight = weight_;
    dice(graph_, logits_, any_target(), loss_name(), options);
  }

  void add_focal(FocalOptions::Form form) {
    const bool sigmoid = form == FocalOptions::Form::kSigmoid;
    add_head(draw_.integer(sigmoid ? 1 : 2, 4));
    FocalOptions options;
    options.form = form;
    options.gamma = draw_.one_of<double>({0, 1, 1.5, 2});
    if (sigmoid && draw_.chance(0.5)) options.alpha = 0.25;
    if (!sigmoid) options.class_weights = class_factors();
    options.ignore_index = ignored_label();
    options.weight = weight_;
    focal(graph_, logits_, sigmoid ? any_target() : labels(), loss_name(), options);
  }

  void add_regression() {
    add_head(draw_.integer(1, 3));
    const ValueId target = reals();
    switch (draw_.integer(0, 3)) {
      case 0:
        mean_squared_error(graph_, logits_, target, loss_name(), {weight_});
        return;
      case 1:
        mean_absolute_error(graph_, logits_, target, loss_name(), {weight_});
        return;
      case 2:
        smooth_l1(graph_, logits_, target, loss_name(), {draw_.real(0.1, 1), weight_});
        return;
      default:
        huber(graph_, logits_, target, loss_name(), {draw_.real(0.1, 1), weight_});
    }
  }

  Graph& graph_;
  ValueId x_;
  std::string name_;
  Draw& draw_;
  double weight_ = 1;
  int64_t channels_ = 1;
  ValueId logits_ = -1;
};

}  // namespace

void random_losses(Graph& graph, ValueId x, const std::string& name, Draw& draw) {
  LossMaker(graph, x, name, draw).make();
}

}  // namespace tessera
