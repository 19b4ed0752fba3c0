// Pooling beside ATen's in float64, on pieces from the border and from the middle of an image.

#include <limits>

#include "tessera/kernels/pool.h"
#include "tessera/kernels/space_sum.h"
#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

enum class Taps { kAny, kNeighbours };

struct PoolCase {
  PoolPiece piece;
  std::vector<int64_t> in, out;  // shapes
  Order order;

  PoolCase(Random& random, Taps taps) {
    in = {random.between(1, 3), random.one_of({1, 3, 8, 12, 16, 24, 64, 200})};
    out = in;
    const int num_spatial = static_cast<int>(random.between(1, 3));
    const int64_t most = in[1] > 20 ? 6 : 13, side = random.between(2, 3);
    for (int i = 0; i < num_spatial; ++i) {
      PoolAxis& axis = piece[3 - num_spatial + i];
      const bool is_usual = random.between(0, 1) == 1;
      axis.kernel = is_usual ? side : random.between(1, 4);
      axis.stride = is_usual ? 2 : random.between(1, 5);
      axis.dilation = is_usual || taps == Taps::kNeighbours ? 1 : random.between(1, 2);
      axis.padding = random.between(0, axis.kernel / 2);
      draw_ranges(random, axis, most);
      in.push_back(axis.in.size());
      out.push_back(axis.out.size());
    }
    order = random.between(0, 4) ? Order::kChannelsLast : Order::kContiguous;
  }

 private:
  static void draw_ranges(Random& random, PoolAxis& axis, int64_t most) {
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
    axis.input_size = reach + random.between(0, most);
    const int64_t outputs = (axis.input_size + 2 * axis.padding - reach) / axis.stride + 1;
    const int64_t begin = random.between(0, 1) * random.between(0, outputs - 1);
    axis.out = {begin, begin + random.between(1, outputs - begin)};
    axis.in =
        intersect({axis.tap(axis.out.begin, 0), axis.tap(axis.out.end - 1, axis.kernel - 1) + 1},
                  {0, axis.input_size});
  }
};

int64_t elements(at::IntArrayRef shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

at::Tensor empty_choices(const PoolCase& c, at::ScalarType code, at::Device device) {
  return at::zeros({elements(c.out)}, at::TensorOptions().dtype(code).device(device));
}

/// Few different numbers, so that many are equal.
at::Tensor draw_maxima(Random& random, const PoolCase& c) {
  at::Tensor x = random.uniform(c.in, -4, 4).round();
  x.masked_fill_(random.uniform(c.in, 0, 1) < 0.03, std::numeric_limits<double>::quiet_NaN());
  x.masked_fill_(random.uniform(c.in, 0, 1) < 0.1, -std::numeric_limits<double>::infinity());
  return x;
}

TEST(PoolKernelsOfDevice, MaximaAndTheirGradient) {
  for_many_cases(80, kRealTypes, [](Random& random, at::ScalarType type) {
    const PoolCase c(random, Taps::kAny);
    const auto code = random.between(0, 3) ? at::kByte : at::kInt;
    const Interior x(random, c.order, draw_maxima(random, c), type);
    const Interior y(random, c.order, at::zeros(c.out), type);
    const Interior dy(random, c.order, random.uniform(c.out, -1, 1), type);
    const Interior dx(random, c.order, at::ones(c.in), type);
    const at::Tensor choices = empty_choices(c, code, tested_device());
    const MaxPoolKernels& table = table_for<MaxPoolKernels>(type);
    table.pool_maxima(c.piece, x, y, choices);
    table.pool_maxima_gradient(c.piece, dy, choices, dx);

    const at::Tensor right_y = at::empty(c.out, at::kDouble),
                     right_dx = at::empty(c.in, at::kDouble);
    const at::Tensor right_choices = empty_choices(c, at::kInt, at::kCPU);
    MaxPoolKernels::kAten.pool_maxima(c.piece, x.exact(), right_y, right_choices);
    MaxPoolKernels::kAten.pool_maxima_gradient(c.piece, dy.exact(), right_choices, right_dx);
    expect_near(at::nan_to_num(y.exact()), at::nan_to_num(right_y), 0);
    EXPECT_TRUE(y.exact().isnan().equal(right_y.isnan()));
    expect_near(dx, right_dx, rounding_of(type));
    y.expect_margins_untouched();
    dx.expect_margins_untouched();
  });
}

TEST(PoolKernelsOfDevice, AveragesAndTheirGradient) {
  for_many_cases(80, kRealTypes, [](Random& random, at::ScalarType type) {
    const PoolCase c(random, Taps::kNeighbours);
    const PoolDivisor divisor{random.between(0, 1) == 1, random.between(0, 3) ? 0 : 5};
    const Interior x(random, c.order, random.uniform(c.in, -1, 1), type);
    const Interior y(random, c.order, at::zeros(c.out), type);
    const Interior dy(random, c.order, random.uniform(c.out, -1, 1), type);
    const Interior dx(random, c.order, at::ones(c.in), type);
    const AveragePoolKernels& table = table_for<AveragePoolKernels>(type);
    table.pool_averages(c.piece, divisor, x, y);
    table.pool_averages_gradient(c.piece, divisor, dy, dx);

    const at::Tensor right_y = at::empty(c.out, at::kDouble),
                     right_dx = at::empty(c.in, at::kDouble);
    AveragePoolKernels::kAten.pool_averages(c.piece, divisor, x.exact(), right_y);
    AveragePoolKernels::kAten.pool_averages_gradient(c.piece, divisor, dy.exact(), right_dx);
    expect_near(y, right_y, rounding_of(type));
    expect_near(dx, right_dx, rounding_of(type));
    y.expect_margins_untouched();
    dx.expect_margins_untouched();
  });
}

// Many blocks, the last of which is not full, and windows as networks have them.
TEST(PoolKernelsOfDevice, LargeImages) {
  for_many_cases(2, kRealTypes, [](Random& random, at::ScalarType type) {
    for (const int64_t kernel : {2, 3}) {
      PoolPiece piece;
      for (int axis = 1; axis < 3; ++axis)
        piece[axis] = {kernel, 2, 1, kernel / 2 - (kernel == 2), 70, {0, 35}, {0, 70}};
      const Interior x(random, Order::kChannelsLast, random.uniform({2, 72, 70, 70}, -1, 1), type);
      const Interior y(random, Order::kChannelsLast, at::zeros({2, 72, 35, 35}), type);
      const at::Tensor choices =
          at::zeros({y.view().numel()}, at::TensorOptions(tested_device()).dtype(at::kByte));
      table_for<MaxPoolKernels>(type).pool_maxima(piece, x, y, choices);
      EXPECT_TRUE(y.exact().equal(at::max_pool2d(x.exact(), kernel, 2, piece[1].padding)));
    }
  });
}

TEST(PoolKernelsOfDevice, SumsOverSpace) {
  for_many_cases(40, kRealTypes, [](Random& random, at::ScalarType type) {
    std::vector<int64_t> shape{random.between(1, 3), random.one_of({1, 3, 8, 24, 64, 520})};
    const int64_t num_spatial = random.between(1, 3);
    for (int64_t axis = 0; axis < num_spatial; ++axis)
      shape.push_back(random.between(1, shape[1] > 100 || num_spatial == 3 ? 9 : 60));
    const Order order = random.between(0, 4) ? Order::kChannelsLast : Order::kContiguous;
    const Interior x(random, order, random.uniform(shape, -1, 2), type);
    const auto of_sums = type == at::kBFloat16 ? at::kFloat : type;
    const at::Tensor sums =
        at::full({shape[0], shape[1], 2}, -7, at::TensorOptions(tested_device()).dtype(of_sums));
    const at::Tensor right = at::empty({shape[0], shape[1]}, at::kDouble);
    tested_table<SpaceSumKernels>().sum_space(x, 0.25, sums.select(2, 0));
    SpaceSumKernels::kAten.sum_space(x.exact(), 0.25, right);
    expect_near(sums.select(2, 0), right, type == at::kDouble ? 1e-12 : 1e-6);
    EXPECT_TRUE((sums.select(2, 1) == -7).all().item<bool>());
  });
}

}  // namespace
}  // namespace tessera::gpu_test
