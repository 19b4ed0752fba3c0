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

/// Clips all that are defined, and gives their norm.
double clip(const std::vector<at::Tensor>& gradients, double max_norm) {
  const at::Tensor squares = at::zeros({std::ssize(gradients)}, at::kDouble);
  std::vector<at::Tensor> defined;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    sum_of_squares(gradients[i], squares[static_cast<int64_t>(i)]);
    defined.push_back(gradients[i]);
  }
  const at::Tensor norm = at::zeros({}, at::kDouble);
  clip_gradients(squares, max_norm, norm, defined);
  return norm.item<double>();
}

double norm_of(const std::vector<at::Tensor>& gradients) { return clip(gradients, 0); }

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
    const double norm = clip(ours, max_norm);
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
    EXPECT_FALSE(std::isfinite(clip(gradients, 1)));
    EXPECT_TRUE(gradients[0].eq(5).all().item<bool>()) << "the update is left out";
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

// Many parameters, of which each has its own count of steps, give what each gives alone.
TEST(OptimiserSteps, TogetherAsAlone) {
  at::manual_seed(5);
  std::vector<AdamStep> steps;
  std::vector<at::Tensor> parameters, gradients, velocities, means, squares;
  for (int64_t i = 0; i < 7; ++i) {
    const at::Tensor numbers = at::randn({i, 3 * i + 1});
    steps.push_back({.learning_rate = 0.01, .weight_decay = 0.1, .steps = 1.0 + i % 3});
    parameters.push_back(numbers);
    gradients.push_back(at::randn_like(numbers));
    for (auto* list : {&velocities, &means, &squares}) list->push_back(at::rand_like(numbers));
  }
  const auto all = [&] {
    std::vector<at::Tensor> numbers;
    for (const auto* list : {&parameters, &velocities, &means, &squares})
      for (const at::Tensor& tensor : *list) numbers.push_back(tensor);
    return numbers;
  };
  const std::vector<at::Tensor> before = cloned(all());
  const SgdStep sgd{0.1, 0.9, 0.01, true}, plain{.learning_rate = 0.1};
  for (size_t i = 0; i < parameters.size(); ++i) {
    sgd_step(sgd, parameters[i], gradients[i], velocities[i]);
    sgd_step(plain, parameters[i], gradients[i], {});
    adam_step(steps[i], parameters[i], gradients[i], means[i], squares[i]);
  }
  const std::vector<at::Tensor> alone = cloned(all());
  for (size_t i = 0; i < before.size(); ++i) all()[i].copy_(before[i]);
  sgd_steps(sgd, parameters, gradients, velocities);
  sgd_steps(plain, parameters, gradients, {});
  adam_steps(steps, parameters, gradients, means, squares);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(all()[i].equal(alone[i])) << i;
}

TEST(Clip, NoLimitIsZero) {
  const at::Tensor gradient = at::full({3}, 1e9, at::kDouble);
  clip({gradient}, 0);
  EXPECT_TRUE(gradient.eq(1e9).all().item<bool>());
}

TEST(Clip, TheLibrarySaysTheSame) {
  for (const double max_norm : {0.0, 0.5, 1e6}) {
    const std::vector<at::Tensor> ours = random_gradients(at::kDouble), theirs = cloned(ours);
    const double norm = clip(ours, max_norm);
    const LibraryKernels by_library;
    EXPECT_NEAR(clip(theirs, max_norm), norm, 1e-12 * norm);
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(!ours[i].defined() || theirs[i].allclose(ours[i], 1e-13, 1e-15)) << i;
  }
}

}  // namespace
}  // namespace tessera::optimise_test
