// Binary cross entropy, dice, focal and regression losses with random options, on labels and on
// real targets, against PyTorch.

#include <random>

#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tests/unit/ops/loss/loss_case.h"

namespace tessera::losses_test {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }
  std::vector<double> factors(int64_t count) {
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(0.25 * static_cast<double>(between(1, 9)));
    return result;
  }
  /// Batch x channels x 0 to 3 spatial axes.
  Shape shape(int64_t channels) {
    Shape shape{between(1, 4), channels};
    for (int64_t axes = between(0, 3); axes > 0; --axes) shape.push_back(between(1, 9));
    return shape;
  }

 private:
  std::mt19937_64 engine_;
};

class LossSeeds : public testing::TestWithParam<uint64_t> {
 protected:
  LossSeeds()
      : random(GetParam()), trace(__FILE__, __LINE__, "seed " + std::to_string(GetParam())) {}

  Element element() { return random.coin() ? Element::kReal : Element::kIndex; }

  /// Some labels are ignored where `ignore_index` is not the default.
  void check(const Shape& shape, Element element, int64_t ignore_index, const AddLoss& add) {
    LossCase loss(shape, element, add);
    if (element == Element::kIndex && ignore_index >= 0) loss.ignore_some(ignore_index);
    loss.check(GetParam());
  }

  Random random;
  testing::ScopedTrace trace;
};
INSTANTIATE_TEST_SUITE_P(Seeds, LossSeeds, testing::Range<uint64_t>(0, 40));

TEST_P(LossSeeds, BinaryCrossEntropyMatchesPyTorch) {
  const Shape shape = random.shape(random.between(1, 4));
  BinaryCrossEntropyOptions options;
  if (random.coin()) options.pos_weight = random.factors(random.coin() ? 1 : shape[1]);
  if (random.coin()) options.ignore_index = 255;
  if (random.coin()) options.weight = 0.3;
  check(shape, element(), options.ignore_index, bce(options));
}

TEST_P(LossSeeds, DiceMatchesItsFormula) {
  const Shape shape = random.shape(random.between(1, 4));
  DiceOptions options;
  options.activation = static_cast<DiceOptions::Activation>(random.between(0, 2));
  if (shape[1] == 1) options.activation = DiceOptions::Activation::kSigmoid;
  if (random.coin()) options.smooth = 1;
  options.squared_denominator = random.coin();
  if (random.coin()) options.average = DiceOptions::Average::kBatch;
  options.include_background = shape[1] == 1 || random.coin();
  if (random.coin()) options.ignore_index = 255;
  if (random.coin()) options.weight = 0.3;
  LossCase loss(shape, element(), dice(options));
  // Without activation the sizes must not nearly cancel.
  if (options.activation == DiceOptions::Activation::kNone) loss.prediction.abs_();
  if (!loss.target.is_floating_point() && options.ignore_index == 255) loss.ignore_some(255);
  loss.check(GetParam());
}

TEST_P(LossSeeds, SigmoidFocalMatchesTorchvision) {
  const Shape shape = random.shape(random.between(1, 4));
  FocalOptions options;
  options.gamma = std::vector<double>{0, 0.5, 1, 2, 3.5}[random.between(0, 4)];
  if (random.coin()) options.alpha = 0.25;
  if (random.coin()) options.ignore_index = 255;
  if (random.coin()) options.weight = 0.3;
  check(shape, element(), options.ignore_index, focal(options));
}

TEST_P(LossSeeds, SoftmaxFocalMatchesItsFormula) {
  const Shape shape = random.shape(random.between(2, 5));
  FocalOptions options{.form = kSoftmaxFocal};
  options.gamma = std::vector<double>{0, 0.5, 1, 2, 3.5}[random.between(0, 4)];
  if (random.coin()) options.class_weights = random.factors(shape[1]);
  if (random.coin()) options.ignore_index = random.coin() ? 255 : 0;
  if (random.coin()) options.weight = 0.3;
  check(shape, Element::kIndex, options.ignore_index, focal(options));
}

TEST_P(LossSeeds, RegressionMatchesPyTorch) {
  const Shape shape = random.shape(random.between(1, 4));
  const double weight = random.coin() ? 1 : 0.3, width = random.coin() ? 1 : 0.4;
  const double beta = random.coin() ? 0 : width;
  const std::vector<AddLoss> losses{
      [=](Graph& g, ValueId x, ValueId t) { mean_squared_error(g, x, t, "loss", {weight}); },
      [=](Graph& g, ValueId x, ValueId t) { mean_absolute_error(g, x, t, "loss", {weight}); },
      [=](Graph& g, ValueId x, ValueId t) {
        smooth_l1(g, x, t, "loss", {beta, weight});
      },
      [=](Graph& g, ValueId x, ValueId t) {
        huber(g, x, t, "loss", {width, weight});
      }};
  for (const AddLoss& add : losses) check(shape, Element::kReal, -1, add);
}

TEST_P(LossSeeds, CrossEntropyTimesItsWeight) {
  const Shape shape = random.shape(random.between(2, 4));
  const CrossEntropyOptions options{.class_weights = random.factors(shape[1]), .weight = 2.5};
  check(shape, Element::kIndex, -1,
        [=](Graph& g, ValueId x, ValueId t) { cross_entropy(g, x, t, "loss", options); });
}

}  // namespace
}  // namespace tessera::losses_test
