// Kernels made of ATen's functions beside the loops on the CPU: products with the weights of linear
// layers, and steps of optimisers. Convolutions are in convolution_test.cpp.

#include "tests/unit/kernels/tables.h"

#include "tessera/kernels/linear.h"
#include "tessera/kernels/optimise.h"

namespace tessera::aten_weights_test {
namespace {

TEST(AtenKernels, LinearLayers) {
  for_many_draws(80, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t) {
    const int64_t rows = draw.between(0, 9), features = draw.between(1, 40),
                  outs = draw.between(1, 40);
    const at::Tensor x = any_numbers(draw, {rows, features}, type);
    const at::Tensor dy = any_numbers(draw, {rows, outs}, type);
    const at::Tensor weight = any_numbers(draw, {outs, features}, type);
    const at::Tensor bias =
        draw.between(0, 1) ? draw.uniform({outs}, -1, 1).to(type) : at::Tensor();
    const auto run = [&](const LinearKernels& table) {
      std::vector<at::Tensor> results{surrounded(draw, {rows, outs}, type).view,
                                      surrounded(draw, {rows, features}, type).view,
                                      strided_copy(draw, at::ones({outs, features}, type))};
      table.linear_product(x, weight, bias, results[0]);
      table.linear_input_gradient(dy, weight, results[1]);
      table.add_linear_weight_gradient(x, dy, results[2]);
      return results;
    };
    const std::vector<at::Tensor> found = run(LinearKernels::kAten),
                                  right = run(LinearKernels::kCpu);
    for (size_t i = 0; i < right.size(); ++i) expect_near(found[i], right[i], rounding_of(type));
  });
}

/// Some steps of both optimisers on the same numbers, with views of their own.
std::vector<at::Tensor> after_steps(const OptimiserKernels& table, uint64_t seed,
                                    at::ScalarType type) {
  Draw draw(seed);
  const Shape shape{draw.between(1, 20), draw.between(1, 70)};
  const at::Tensor parameter = any_numbers(draw, shape, type);
  const at::Tensor velocity =
      draw.between(0, 2) ? strided_copy(draw, at::zeros(shape, type)) : at::Tensor();
  const at::Tensor mean = strided_copy(draw, at::zeros(shape, type));
  const at::Tensor square = strided_copy(draw, at::zeros(shape, type));
  const double decay = static_cast<double>(draw.between(0, 1)) * 0.01,
               shrink = static_cast<double>(draw.between(0, 1)) * 0.1;
  const bool nesterov = draw.between(0, 1) == 1;
  for (int step = 1; step <= 4; ++step) {
    const at::Tensor gradient = any_numbers(draw, shape, type);
    table.sgd_step({0.1, velocity.defined() ? 0.9 : 0, decay, nesterov}, parameter, gradient,
                   velocity);
    table.adam_step({.learning_rate = 0.01,
                     .gradient_decay = decay,
                     .weight_decay = shrink,
                     .steps = 1.0 * step},
                    parameter, gradient, mean, square);
  }
  std::vector<at::Tensor> results{parameter, mean, square};
  if (velocity.defined()) results.push_back(velocity);
  return results;
}

// To the bit: nothing is summed over elements.
TEST(AtenKernels, OptimiserSteps) {
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const at::ScalarType type : kWideTypes) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " in " << type);
      const std::vector<at::Tensor> found = after_steps(OptimiserKernels::kAten, seed, type);
      const std::vector<at::Tensor> right = after_steps(OptimiserKernels::kCpu, seed, type);
      for (size_t i = 0; i < right.size(); ++i) expect_same(found[i], right[i]);
    }
}

}  // namespace
}  // namespace tessera::aten_weights_test
