// Clipping against PyTorch's, the norm's independence of threads, and steps that have the same bits
// wherever numbers lie.

#include "tessera/kernels/optimise.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

namespace tessera::optimise_test {
namespace {

std::vector<at::Tensor> random_gradients(at::ScalarType real) {
  at::manual_seed(3);
  return {at::randn({17, 5, 3}, real), at::Tensor(), at::randn({40'001}, real),
          at::randn({1}, real), at::empty({0}, real)};
}

double norm_of(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += sum_of_squares(gradient);
  return std::sqrt(sum);
}

void clip(const std::vector<at::Tensor>& gradients, double max_norm) {
  const double factor = clip_factor(norm_of(gradients), max_norm);
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) gradient.mul_(factor);
}

std::vector<at::Tensor> cloned(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.defined() ? tensor.clone() : at::Tensor());
  return copies;
}

TEST(Clip, LikeTorch) {
  for (double max_norm : {0.5, 100.0, 1e6}) {
    std::vector<at::Tensor> ours = random_gradients(at::kDouble), parameters;
    for (const at::Tensor& gradient : ours) {
      if (!gradient.defined()) continue;
      parameters.push_back(at::zeros_like(gradient).requires_grad_(true));
      parameters.back().mutable_grad() = gradient.clone();
    }
    const double norm = norm_of(ours);
    clip(ours, max_norm);
    EXPECT_NEAR(norm, torch::nn::utils::clip_grad_norm_(parameters, max_norm), 1e-11);
    size_t next = 0;
    for (const at::Tensor& gradient : ours) {
      if (!gradient.defined()) continue;
      EXPECT_TRUE(gradient.allclose(parameters[next++].grad(), 1e-14, 1e-16)) << max_norm;
    }
  }
}

TEST(Clip, LeavesShortGradientsAlone) {
  std::vector<at::Tensor> gradients = random_gradients(at::kFloat);
  const std::vector<at::Tensor> before = cloned(gradients);
  clip(gradients, norm_of(gradients) * 1.01);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    EXPECT_TRUE(gradients[i].equal(before[i]));
  }
}

TEST(Clip, TheNormDoesNotDependOnThreadsOrStrides) {
  const std::vector<at::Tensor> gradients = random_gradients(at::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = norm_of(gradients);
  at::set_num_threads(3);
  EXPECT_EQ(norm_of(gradients), one);
  at::set_num_threads(threads);
  const at::Tensor wide = at::zeros({40'001, 3});
  wide.select(1, 1).copy_(gradients[2]);
  EXPECT_EQ(norm_of({gradients[0], wide.select(1, 1), gradients[3]}), one);
}

TEST(Clip, SumsInFloat64) {
  // In float32 the squares overflow, and the small ones would be lost beside the large one.
  EXPECT_NEAR(norm_of({at::full({4}, 1e30, at::kFloat)}) / 2e30, 1, 1e-6);
  const at::Tensor mixed = at::full({1'000'001}, 1e-4, at::kFloat);
  mixed[0] = 1;
  EXPECT_NEAR(norm_of({mixed}), std::sqrt(1.01), 1e-9);
}

TEST(Clip, LeavesGradientsAloneWhereTheNormIsNotFinite) {
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<at::Tensor> gradients{at::full({3}, 5.0), at::full({2}, 7.0)};
    gradients[1][1] = bad;
    const double norm = norm_of(gradients);
    EXPECT_FALSE(std::isfinite(norm));
    EXPECT_EQ(clip_factor(norm, 1), 1) << "the update is left out";
  }
}

// Numbers are stepped by themselves: a tensor of its own, a part of a longer one that begins
// anywhere, every third number, and any number of threads give the same bits.
TEST(OptimiserSteps, HaveTheSameBitsAnywhere) {
  at::manual_seed(4);
  const int64_t count = 70'001;
  const at::Tensor start = at::randn({count}), gradient = at::randn({count});
  const auto run = [&](const auto& place) {
    const at::Tensor p = place(start), g = place(gradient), velocity = place(at::zeros({count})),
                     mean = place(at::zeros({count})), square = place(at::zeros({count}));
    for (int step = 1; step <= 3; ++step) {
      sgd_step({0.1, 0.9, 0.01, step % 2 == 0}, p, g, velocity);
      adam_step({.learning_rate = 0.01, .weight_decay = 0.1, .steps = 1.0 * step}, p, g, mean,
                square);
    }
    return p.clone();
  };
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor expected = run([](const at::Tensor& t) { return t.clone(); });
  at::set_num_threads(3);
  EXPECT_TRUE(run([](const at::Tensor& t) { return t.clone(); }).equal(expected));
  at::set_num_threads(threads);
  EXPECT_TRUE(run([](const at::Tensor& t) {
                return at::cat({at::zeros({5}), t}).slice(0, 5);
              }).equal(expected));
  EXPECT_TRUE(run([](const at::Tensor& t) {
                return t.unsqueeze(1).repeat({1, 3}).select(1, 1);
              }).equal(expected));
  EXPECT_FALSE(expected.equal(start));
}

TEST(Clip, NoLimitIsZero) { EXPECT_EQ(clip_factor(1e9, 0), 1); }

}  // namespace
}  // namespace tessera::optimise_test
