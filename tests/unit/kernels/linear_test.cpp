// Products with the weight of a linear layer beside the library's: few rows and many, features that
// fill registers and that do not, views, and any number of threads to the bit.

#include "tessera/kernels/linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/unit/ops/random_views.h"

namespace tessera::linear_kernel_test {
namespace {

struct Case {
  at::Tensor x, weight, bias, dy;  // float64
};

Case draw_case(Draw& draw) {
  const int64_t most = draw.between(0, 3) == 0 ? 700 : 90;
  const int64_t rows = draw.between(1, 40), features = draw.between(1, most);
  const int64_t outs = draw.between(1, most);
  return {draw.uniform({rows, features}, -1, 1), draw.uniform({outs, features}, -1, 1),
          draw.uniform({outs}, -1, 1), draw.uniform({rows, outs}, -1, 1)};
}

/// The rows in a larger matrix.
at::Tensor in_larger(const at::Tensor& matrix, at::ScalarType type) {
  at::Tensor larger = at::full({matrix.size(0) + 2, matrix.size(1) + 5}, 7, type);
  at::Tensor view = larger.narrow(0, 1, matrix.size(0)).narrow(1, 2, matrix.size(1));
  view.copy_(matrix);
  return view;
}

struct Results {
  at::Tensor y, dx, dw;
};

/// The gradient of the weight is added to ones.
Results by_kernels(const Case& c, at::ScalarType type) {
  const at::Tensor x = in_larger(c.x, type), weight = c.weight.to(type), dy = in_larger(c.dy, type);
  Results results{in_larger(at::zeros_like(c.dy), type), in_larger(at::zeros_like(c.x), type),
                  at::ones(c.weight.sizes(), type)};
  linear_product(x, weight, c.bias.to(type), results.y);
  linear_input_gradient(dy, weight, results.dx);
  add_linear_weight_gradient(x, dy, results.dw);
  return results;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).abs().max().item<double>();
}

TEST(LinearKernels, AreTheLibrarys) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Case c = draw_case(draw);
    const Results right{at::addmm(c.bias, c.x, c.weight.t()), at::mm(c.dy, c.weight),
                        at::mm(c.dy.t(), c.x) + 1};
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const double limit = type == at::kDouble ? 1e-12 : 1e-4;
      const Results found = by_kernels(c, type);
      EXPECT_LT(distance(found.y, right.y), limit);
      EXPECT_LT(distance(found.dx, right.dx), limit);
      EXPECT_LT(distance(found.dw, right.dw), limit);
    }
  }
}

TEST(LinearKernels, HaveTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Case c = draw_case(draw);
    at::set_num_threads(1);
    const Results alone = by_kernels(c, at::kFloat);
    at::set_num_threads(3);
    const Results together = by_kernels(c, at::kFloat);
    EXPECT_TRUE(at::equal(alone.y, together.y));
    EXPECT_TRUE(at::equal(alone.dx, together.dx));
    EXPECT_TRUE(at::equal(alone.dw, together.dw));
  }
  at::set_num_threads(threads);
}

TEST(LinearKernels, HaveNothingToAddWithoutRows) {
  const at::Tensor x = at::zeros({0, 5}), dy = at::zeros({0, 3}), weight = at::ones({3, 5});
  at::Tensor gradient = at::ones({3, 5});
  linear_product(x, weight, {}, at::zeros({0, 3}));
  linear_input_gradient(dy, weight, at::zeros({0, 5}));
  add_linear_weight_gradient(x, dy, gradient);
  EXPECT_TRUE(at::equal(gradient, at::ones({3, 5})));
}

}  // namespace
}  // namespace tessera::linear_kernel_test
