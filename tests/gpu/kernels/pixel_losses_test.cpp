// Cross entropy, sums over labels and dropout beside ATen's on the CPU, in float64, on the numbers
// as their type has rounded them.

#include <cmath>
#include <limits>
#include <utility>

#include "tessera/kernels/cross_entropy.h"
#include "tessera/kernels/dropout.h"
#include "tessera/kernels/label_sum.h"
#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

constexpr int64_t kIgnored = 255;

/// Loops on the CPU take no narrow numbers.
bool is_taken(at::ScalarType type) { return tested_device().is_cuda() || type != at::kBFloat16; }

Order draw_order(Random& random) {
  return random.between(0, 3) ? Order::kChannelsLast : Order::kContiguous;
}

std::vector<int64_t> draw_shape(Random& random, int64_t channels) {
  std::vector<int64_t> shape{random.between(1, 3), channels};
  const int64_t num_spatial = random.between(0, 3);
  for (int64_t axis = 0; axis < num_spatial; ++axis)
    shape.push_back(random.between(1, num_spatial == 1 ? 5000 : num_spatial == 2 ? 70 : 14));
  return shape;
}

at::Tensor draw_labels(Random& random, const std::vector<int64_t>& image) {
  std::vector<int64_t> shape = image;
  shape.erase(shape.begin() + 1);
  const at::Tensor labels =
      random.uniform(shape, 0, static_cast<double>(image[1])).floor().to(at::kLong);
  return labels.masked_fill_(random.uniform(shape, 0, 1) < 0.1, kIgnored);
}

/// On the tested device, with distances that are not dense.
at::Tensor laid_apart(Random& random, const at::Tensor& labels) {
  std::vector<int64_t> wider = labels.sizes().vec();
  wider.back() += random.between(0, 3);
  const at::Tensor buffer = at::full(wider, kIgnored, labels.options().device(tested_device()));
  return buffer.narrow(-1, 0, labels.sizes().back()).copy_(labels);
}

std::vector<double> draw_weights(Random& random, int64_t classes) {
  std::vector<double> weights;
  if (random.between(0, 1))
    for (int64_t k = 0; k < classes; ++k)
      weights.push_back(static_cast<double>(random.between(0, 8)) / 4);
  return weights;
}

at::Tensor host_number(double number) { return at::full({}, number, at::kDouble); }

TEST(PixelLossesOnDevice, CrossEntropy) {
  for_many_cases(80, kRealTypes, [](Random& random, at::ScalarType type) {
    if (!is_taken(type)) return;
    const int64_t classes = random.one_of({1, 2, 2, 3, 4, 5, 8, 16, 19, 24, 40, 64, 70});
    const std::vector<int64_t> shape = draw_shape(random, classes);
    const CrossEntropyTerms terms{
        .class_weights = draw_weights(random, classes),
        .label_smoothing = 0.1 * static_cast<double>(random.one_of({0, 1})),
        .ignore_index = kIgnored};
    at::Tensor numbers = random.uniform(shape, -9, 9);
    const at::Tensor labels = draw_labels(random, shape);
    // Where pixels do not count, nobody looks at their numbers.
    numbers.masked_fill_((labels == kIgnored).unsqueeze(1),
                         std::numeric_limits<double>::quiet_NaN());
    const Interior logits(random, draw_order(random), numbers, type),
        gradient(random, draw_order(random), numbers, type);
    const at::Tensor targets = laid_apart(random, labels);

    const double right =
        CrossEntropyKernels::kAten.cross_entropy_sum(terms, logits.exact(), labels).item<double>();
    const double sum = tested_table<CrossEntropyKernels>()
                           .cross_entropy_sum(terms, logits, targets)
                           .item<double>();
    const double limit = type == at::kDouble ? 1e-12 : 1e-5;
    EXPECT_NEAR(sum, right, limit * std::max(1.0, std::abs(right)));

    const at::Tensor right_gradient = at::empty(shape, at::kDouble);
    CrossEntropyKernels::kAten.cross_entropy_gradient(terms, host_number(3), logits.exact(), labels,
                                                      right_gradient);
    tested_table<CrossEntropyKernels>().cross_entropy_gradient(
        terms, host_number(3).to(tested_device()), logits, targets, gradient);
    expect_near(gradient, right_gradient, rounding_of(type));
    gradient.expect_margins_untouched();
  });
}

// A rule of devices: the host sees such labels when the step is over.
TEST(PixelLossesOnDevice, LabelsThatAreNotLegalDoNotCount) {
  if (!tested_device().is_cuda()) GTEST_SKIP() << "the CPU refuses them";
  for_many_cases(20, kRealTypes, [](Random& random, at::ScalarType type) {
    const std::vector<int64_t> shape = draw_shape(random, random.one_of({2, 3, 16, 70}));
    const Interior logits(random, Order::kChannelsLast, random.uniform(shape, -3, 3), type);
    const at::Tensor labels = draw_labels(random, shape).to(tested_device());
    const auto results = [&](int64_t instead) {
      const at::Tensor odd = labels.masked_fill(labels == kIgnored, instead);
      const at::Tensor gradient = at::empty_like(logits.view());
      cross_entropy_gradient({.ignore_index = kIgnored}, host_number(1).to(tested_device()), logits,
                             odd, gradient);
      return std::pair(cross_entropy_sum({.ignore_index = kIgnored}, logits, odd).item<double>(),
                       gradient);
    };
    const auto [right_sum, right_gradient] = results(kIgnored);
    for (const int64_t label : {int64_t{-1}, shape[1], int64_t{1} << 40}) {
      const auto [sum, gradient] = results(label);
      EXPECT_EQ(sum, right_sum);
      EXPECT_TRUE(gradient.equal(right_gradient));
    }
  });
}

TEST(PixelLossesOnDevice, SumsOverLabels) {
  for_many_cases(80, {at::kDouble}, [](Random& random, at::ScalarType) {
    const int64_t classes = random.one_of({1, 2, 3, 64, 70});
    const at::Tensor labels = draw_labels(random, draw_shape(random, classes));
    const std::vector<double> weights = draw_weights(random, classes);
    const int64_t odd = random.between(0, 3) ? 0 : random.one_of({-1, classes, int64_t{1} << 40});
    if (odd != 0) labels.flatten()[random.between(0, labels.numel() - 1)] = odd;
    const at::Tensor sum = host_number(-1).to(tested_device());
    const at::Tensor illegal = at::full({2}, 7, sum.options().dtype(at::kLong));
    tested_table<LabelSumKernels>().sum_over_labels(laid_apart(random, labels), classes, kIgnored,
                                                    weights, sum, illegal[1]);
    EXPECT_EQ(illegal[0].item<int64_t>(), 7);
    EXPECT_EQ(illegal[1].item<int64_t>(), odd == 0 ? 7 : odd);
    if (odd != 0) {
      EXPECT_TRUE(std::isnan(sum.item<double>()));
      return;
    }
    const at::Tensor right = host_number(-1), none = at::zeros({}, at::kLong);
    LabelSumKernels::kCpu.sum_over_labels(labels, classes, kIgnored, weights, right, none);
    EXPECT_EQ(sum.item<double>(), right.item<double>()) << "weights are multiples of 1/4";
  });
}

TEST(PixelLossesOnDevice, NothingToSum) {
  const at::TensorOptions options = at::TensorOptions(tested_device());
  const at::Tensor logits = at::empty({2, 3, 0, 4}, options),
                   sum = at::ones({}, options.dtype(at::kDouble));
  const at::Tensor labels = at::empty({2, 0, 4}, options.dtype(at::kLong)),
                   none = at::zeros({}, labels.options());
  EXPECT_EQ(cross_entropy_sum({}, logits, labels).item<double>(), 0);
  cross_entropy_gradient({}, sum, logits, labels, logits);
  sum_over_labels(labels, 3, kIgnored, {}, sum, none);
  EXPECT_EQ(sum.item<double>(), 0);
}

/// The bits of the CPU's loops, which are rounded once more in a narrow type.
TEST(PixelLossesOnDevice, Dropout) {
  for_many_cases(60, kRealTypes, [](Random& random, at::ScalarType type) {
    if (!is_taken(type)) return;
    const std::vector<int64_t> shape = draw_shape(random, random.one_of({1, 3, 8, 16, 24, 64}));
    DropoutMask mask{.key = RandomKey(static_cast<uint64_t>(random.between(0, 1 << 30))),
                     .probability = random.between(0, 10) / 10.0,
                     .first_index = random.between(0, int64_t{1} << 40),
                     .strides = {}};
    int64_t stride = random.between(1, 1000);
    for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis] + random.between(0, 3))
      mask.strides.insert(mask.strides.begin(), random.between(0, 3) ? stride : 0);
    const Fate kept{1.7, 0.3 * static_cast<double>(random.between(0, 1))},
        dropped{0, -1.1 * kept.offset};
    const Interior from(random, draw_order(random), random.uniform(shape, -2, 2), type),
        to(random, draw_order(random), at::zeros(shape, at::kDouble), type);
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor right = at::empty(shape, wide);
    DropoutKernels::kCpu.apply_dropout(mask, kept, dropped, from.exact().to(wide), right);
    if (random.between(0, 1)) {
      mask.state = at::full({}, static_cast<int64_t>(mask.key.state()),
                            at::TensorOptions(tested_device()).dtype(at::kLong));
      mask.key = RandomKey(1);
    }
    tested_table<DropoutKernels>().apply_dropout(mask, kept, dropped, from, to);
    EXPECT_TRUE(to.view().cpu().equal(right.to(type)));
    to.expect_margins_untouched();
  });
}

}  // namespace
}  // namespace tessera::gpu_test
