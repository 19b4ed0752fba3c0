// Cross entropy and softmax kernels beside the library's: rows that fill registers and rows that do
// not, many classes, and logits that are not finite.

#include "tessera/kernels/cross_entropy.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <optional>

#include "tessera/kernels/softmax.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::cross_entropy_kernel_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Results {
  double sum;
  at::Tensor gradient;
};

Results by_kernels(Draw& draw, const CrossEntropyTerms& terms, const at::Tensor& logits,
                   const at::Tensor& labels, at::ScalarType real) {
  const at::Tensor x = strided_copy(draw, logits.to(real)), t = strided_copy(draw, labels);
  const at::Tensor gradient = surrounded(draw, logits.sizes().vec(), real).view;
  cross_entropy_gradient(terms, at::scalar_tensor(0.5, at::kDouble), x, t, gradient);
  return {cross_entropy_sum(terms, x, t).item<double>(), gradient.to(at::kDouble)};
}

Results by_library(const CrossEntropyTerms& terms, const at::Tensor& logits,
                   const at::Tensor& labels) {
  const at::Tensor x = logits.clone().requires_grad_(true);
  at::Tensor weights;
  if (!terms.class_weights.empty()) weights = at::tensor(terms.class_weights, at::kDouble);
  const at::Tensor sum = at::cross_entropy_loss(x, labels, weights, at::Reduction::Sum,
                                                terms.ignore_index, terms.label_smoothing);
  return {sum.item<double>(), torch::autograd::grad({sum * 0.5}, {x})[0]};
}

bool alike(double found, double expected, double most) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= most * std::max(1.0, std::abs(expected));
}

TEST(CrossEntropyKernels, LikeTheLibrary) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const int64_t classes = seed % 5 == 0 ? draw.between(100, 1500) : draw.between(1, 25);
    Shape shape{draw.between(1, 3), classes};
    if (seed % 4 != 0) shape.push_back(draw.between(1, seed % 5 == 0 ? 20 : 300));
    Shape pixels = shape;
    pixels.erase(pixels.begin() + 1);
    const at::Tensor logits = draw.uniform(shape, -9, 9);
    const at::Tensor labels = draw.labels(pixels, classes);
    CrossEntropyTerms terms{.ignore_index = 255};
    labels.masked_fill_(draw.uniform(pixels, 0, 1) < 0.2, 255);
    if (draw.between(0, 1) == 0)
      for (int64_t k = 0; k < classes; ++k)
        terms.class_weights.push_back(0.25 * static_cast<double>(draw.between(1, 9)));
    if (draw.between(0, 1) == 0) terms.label_smoothing = 0.1;
    const at::Tensor legal = labels.masked_fill(labels >= classes, 255);
    const Results expected = by_library(terms, logits, legal);
    const Results exact = by_kernels(draw, terms, logits, legal, at::kDouble);
    EXPECT_TRUE(alike(exact.sum, expected.sum, 1e-13)) << exact.sum << " " << expected.sum;
    EXPECT_LE((exact.gradient - expected.gradient).abs().max().item<double>(), 1e-14);
    const Results found = by_kernels(draw, terms, logits, legal, at::kFloat);
    EXPECT_TRUE(alike(found.sum, expected.sum, 1e-6));
    EXPECT_LE((found.gradient - expected.gradient).abs().max().item<double>(), 1e-6);
  }
}

// One pixel has a logit that is not finite, the others keep their gradients.
TEST(CrossEntropyKernels, WhatIsNotFiniteIsAsInTheLibrary) {
  for (const double bad : {kInfinity, -kInfinity, kNan})
    for (const int64_t at_class : {0, 1, 2})
      for (const int64_t label : {0, 1, 255}) {
        Draw draw(1);
        const at::Tensor logits = draw.uniform({1, 3, 37}, -3, 3);
        logits[0][at_class][5] = bad;
        const at::Tensor labels = draw.labels({1, 37}, 3);
        labels[0][5] = label;
        const CrossEntropyTerms terms{.ignore_index = 255};
        const Results found = by_kernels(draw, terms, logits, labels, at::kDouble);
        const Results expected = by_library(terms, logits, labels);
        EXPECT_TRUE(alike(found.sum, expected.sum, 1e-13))
            << bad << " of class " << at_class << ", label " << label << ": " << found.sum
            << " instead of " << expected.sum;
        const at::Tensor others = at::arange(37) != 5;
        EXPECT_TRUE(found.gradient.index({0, at::indexing::Slice(), others})
                        .allclose(expected.gradient.index({0, at::indexing::Slice(), others})));
        if (label == 255) {
          EXPECT_EQ(found.gradient.select(2, 5).abs().sum().item<double>(), 0);
        }
      }
}

TEST(CrossEntropyKernels, ThreadsChangeNothing) {
  const int before = at::get_num_threads();
  Draw draw(5);
  const at::Tensor logits = draw.uniform({2, 7, 50, 133}, -3, 3).to(at::kFloat);
  const at::Tensor labels = draw.labels({2, 50, 133}, 7), gradient = at::empty_like(logits);
  std::optional<double> sum;
  at::Tensor first;
  for (int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const double found = cross_entropy_sum({}, logits, labels).item<double>();
    cross_entropy_gradient({}, at::scalar_tensor(1, at::kDouble), logits, labels, gradient);
    if (!sum) first = gradient.clone();
    sum = sum.value_or(found);
    EXPECT_EQ(found, *sum);
    EXPECT_TRUE(gradient.equal(first));
  }
  at::set_num_threads(before);
}

TEST(SoftmaxKernels, LikeTheLibrary) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Shape shape{draw.between(1, 2), draw.between(1, 40), draw.between(1, 200)};
    const at::Tensor x = draw.uniform(shape, -800, 9);
    const bool logarithm = draw.between(0, 1) == 0;
    const SoftmaxForm form = logarithm ? SoftmaxForm::kLogSoftmax : SoftmaxForm::kSoftmax;
    const at::Tensor y = surrounded(draw, shape, at::kDouble).view;
    softmax_channels(form, strided_copy(draw, x), y);
    const at::Tensor expected = logarithm ? at::log_softmax(x, 1) : at::softmax(x, 1);
    EXPECT_TRUE(y.allclose(expected, 1e-13, 1e-14));
    const at::Tensor dy = draw.uniform(shape, -1, 1), dx = at::empty(shape, at::kDouble);
    softmax_channels_gradient(form, y, dy, dx);
    const at::Tensor slopes = logarithm
                                  ? at::_log_softmax_backward_data(dy, expected, 1, at::kDouble)
                                  : at::_softmax_backward_data(dy, expected, 1, at::kDouble);
    EXPECT_TRUE(dx.allclose(slopes, 1e-11, 1e-13));
  }
}

}  // namespace
}  // namespace tessera::cross_entropy_kernel_test
