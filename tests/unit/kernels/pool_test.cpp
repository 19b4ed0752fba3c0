// Max pooling beside the library's, on rows that fill registers and rows that do not, with NaN and
// equal values, and its gradient; sums over space.

#include "tessera/kernels/pool.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "tessera/kernels/space_sum.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::pool_kernel_test {
namespace {

struct Case {
  PoolPiece piece;
  std::vector<int64_t> kernel, stride, padding, dilation;
  at::Tensor x;  // float64
};

/// A piece is the whole image: H and W of the windows are drawn.
Case draw_case(Draw& draw) {
  Case c;
  std::vector<int64_t> shape{draw.between(1, 2), draw.between(1, 3)};
  for (int axis = 1; axis < 3; ++axis) {
    PoolAxis& along = c.piece[axis];
    const bool pairs = draw.between(0, 2) == 0;
    along.kernel = pairs ? 2 : draw.between(1, 4);
    along.stride = pairs ? 2 : draw.between(1, 3);
    along.padding = pairs ? 0 : draw.between(0, along.kernel / 2);
    along.dilation = pairs ? 1 : draw.between(1, 2);
    const int64_t reach = (along.kernel - 1) * along.dilation + 1;
    along.input_size = reach + draw.between(0, axis == 2 ? 90 : 9);
    along.out = {0, (along.input_size + 2 * along.padding - reach) / along.stride + 1};
    const int64_t last = (along.out.end - 1) * along.stride - along.padding + reach;
    along.in = {0, std::min(along.input_size, last)};
    shape.push_back(along.input_size);
    c.kernel.push_back(along.kernel);
    c.stride.push_back(along.stride);
    c.padding.push_back(along.padding);
    c.dilation.push_back(along.dilation);
  }
  // Few different numbers, so that many are equal.
  c.x = draw.uniform(shape, -4, 4).round();
  c.x.masked_fill_(draw.uniform(shape, 0, 1) < 0.05, std::numeric_limits<double>::quiet_NaN());
  c.x.masked_fill_(draw.uniform(shape, 0, 1) < 0.2, -std::numeric_limits<double>::infinity());
  return c;
}

at::Tensor read_part(const Case& c, const at::Tensor& image) {
  return image.narrow(2, 0, c.piece[1].in.end).narrow(3, 0, c.piece[2].in.end);
}

struct Results {
  at::Tensor y, dx, choices;
};

Results by_kernels(Draw& draw, const Case& c, const at::Tensor& dy, at::ScalarType real,
                   at::ScalarType code) {
  const std::vector<int64_t> shape = dy.sizes().vec();
  const at::Tensor x = strided_copy(draw, read_part(c, c.x).to(real));
  Results results{surrounded(draw, shape, real).view, surrounded(draw, x.sizes().vec(), real).view,
                  at::empty({dy.numel()}, code)};
  pool_maxima(c.piece, x, results.y, results.choices);
  pool_maxima_gradient(c.piece, strided_copy(draw, dy.to(real)), results.choices, results.dx);
  return results;
}

bool alike(const at::Tensor& found, const at::Tensor& expected) {
  return found.to(at::kDouble).allclose(expected, 1e-6, 1e-6, /*equal_nan=*/true);
}

TEST(PoolKernels, MaximaAsInPyTorch) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Case c = draw_case(draw);
    const auto [y, places] =
        at::max_pool2d_with_indices(c.x, c.kernel, c.stride, c.padding, c.dilation);
    const at::Tensor dy = draw.uniform(y.sizes().vec(), -1, 1);
    const at::Tensor dx =
        read_part(c, at::max_pool2d_with_indices_backward(dy, c.x, c.kernel, c.stride, c.padding,
                                                          c.dilation, false, places));
    for (const at::ScalarType real : {at::kDouble, at::kFloat})
      for (const at::ScalarType code : {at::kByte, at::kInt}) {
        const Results found = by_kernels(draw, c, dy, real, code);
        EXPECT_TRUE(alike(found.y, y));
        EXPECT_TRUE(alike(found.dx, dx));
      }
    // Maxima are none of them rounded; of gradients those alone that belong to one window.
    const Results narrow = by_kernels(draw, c, dy.to(at::kBFloat16), at::kBFloat16, at::kByte);
    EXPECT_TRUE(alike(narrow.y, y));
    if (c.kernel == c.stride && c.dilation == std::vector<int64_t>(2, 1)) {
      EXPECT_TRUE(alike(narrow.dx, dx.to(at::kBFloat16).to(at::kDouble)));
    }
  }
}

TEST(PoolKernels, ThreadsChangeNothing) {
  const int before = at::get_num_threads();
  Draw draw(3);
  const at::Tensor x = draw.uniform({2, 8, 60, 70}, -1, 1).to(at::kFloat);
  at::Tensor first;
  for (int threads : {1, 3}) {
    at::set_num_threads(threads);
    const at::Tensor sums = at::empty({2, 8}, at::kFloat);
    sum_space(x.slice(3, 1, 68), 0.5, sums);
    if (!first.defined()) first = sums;
    EXPECT_TRUE(sums.equal(first));
    EXPECT_TRUE(alike(sums, x.slice(3, 1, 68).to(at::kDouble).sum({2, 3}) * 0.5));
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace tessera::pool_kernel_test
