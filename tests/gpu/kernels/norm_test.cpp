// Each function beside ATen's in float64, on the numbers as their type has rounded them.

#include "tessera/kernels/norm.h"

#include <limits>

#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

struct NormCase {
  std::vector<int64_t> shape;
  int64_t rows, cells;
  Order order;

  NormCase(Random& random) {
    shape = {random.between(1, 3), random.one_of({1, 3, 8, 12, 16, 24, 64, 520})};
    const int64_t num_spatial = random.between(1, 3), most = shape[1] > 100 ? 5 : 14;
    for (int64_t axis = 0; axis < num_spatial; ++axis) shape.push_back(random.between(1, most));
    rows = random.between(0, 1) ? shape[0] : 1;
    cells = shape[1] % 4 == 0 && random.between(0, 1) ? shape[1] / 4 : shape[1];
    order = random.between(0, 4) ? Order::kChannelsLast : Order::kContiguous;
  }
  at::Tensor beside(const at::Tensor& numbers) const {  // rows x (cells or channels)
    at::Tensor wide = numbers.repeat_interleave(shape[1] / numbers.size(1), 1);
    while (wide.dim() < static_cast<int64_t>(shape.size())) wide = wide.unsqueeze(-1);
    return wide;
  }
};

PlaneNorm on_device(const PlaneNorm& norm, at::ScalarType type) {
  const auto move = [&](const at::Tensor& table, at::ScalarType to) {
    return table.defined() ? table.to(tested_device(), to) : at::Tensor();
  };
  return {.mean = move(norm.mean, at::kDouble),
          .inverse_std = move(norm.inverse_std, at::kDouble),
          .weight = move(norm.weight, type),
          .bias = move(norm.bias, type),
          .activation = norm.activation};
}

/// Weight and bias are numbers of the type.
PlaneNorm draw_norm(Random& random, const NormCase& c, at::ScalarType type) {
  PlaneNorm norm{.mean = random.uniform({c.rows, c.cells}, -1, 1),
                 .inverse_std = random.uniform({c.rows, c.cells}, 0.5, 2),
                 .weight = {},
                 .bias = {},
                 .activation = static_cast<NormActivation>(random.between(0, 2))};
  const auto rounded = [&](double low, double high) {
    return random.uniform({c.shape[1]}, low, high).to(type).to(at::kDouble);
  };
  if (random.between(0, 2)) {
    norm.weight = rounded(0.5, 3);
    norm.bias = rounded(-1, 1);
  }
  return norm;
}

/// None of which is so near to where the activation bends that rounding would decide.
at::Tensor draw_x(Random& random, const NormCase& c, const PlaneNorm& norm) {
  const at::Tensor x = random.uniform(c.shape, -4, 4);
  at::Tensor scale = c.beside(norm.inverse_std);
  if (norm.weight.defined()) scale = scale * c.beside(norm.weight.unsqueeze(0));
  at::Tensor values = (x - c.beside(norm.mean)) * scale;
  if (norm.bias.defined()) values = values + c.beside(norm.bias.unsqueeze(0));
  const at::Tensor is_near = ((values.abs() < 0.15).logical_or((values - 6).abs() < 0.15));
  return at::where(is_near, x + 0.4 / scale, x);
}

at::Tensor empty_table(at::IntArrayRef shape) {
  return at::full(shape, -7, at::TensorOptions().dtype(at::kDouble).device(tested_device()));
}

TEST(NormKernelsOfDevice, Moments) {
  for_many_cases(30, kRealTypes, [](Random& random, at::ScalarType type) {
    const NormCase c(random);
    const double offset = type == at::kBFloat16 ? 3 : 300;
    const Interior x(random, c.order, random.uniform(c.shape, -1, 1) + offset, type);
    const at::Tensor found = empty_table({c.rows, c.cells, 3});
    const at::Tensor expected = at::empty({c.rows, c.cells, 3}, at::kDouble);
    tested_table<NormKernels>().plane_moments(x, found);
    NormKernels::kAten.plane_moments(x.exact(), expected);
    for (int64_t number = 0; number < 3; ++number)
      expect_near(found.select(-1, number), expected.select(-1, number),
                  type == at::kDouble ? 1e-12 : 1e-6);
  });
}

// Many blocks, the last of which is not full; and the same bits when it is done again.
TEST(NormKernelsOfDevice, MomentsOfManyTiles) {
  for_many_cases(2, kRealTypes, [](Random& random, at::ScalarType type) {
    const std::vector<int64_t> shape{2, 16, 61, 67};
    const Interior x(random, Order::kChannelsLast, random.uniform(shape, -1, 2), type);
    const at::Tensor found = empty_table({1, 16, 3}), again = empty_table({1, 16, 3});
    const at::Tensor expected = at::empty({1, 16, 3}, at::kDouble);
    tested_table<NormKernels>().plane_moments(x, found);
    tested_table<NormKernels>().plane_moments(x, again);
    NormKernels::kAten.plane_moments(x.exact(), expected);
    expect_near(found, expected, type == at::kDouble ? 1e-12 : 1e-6);
    EXPECT_TRUE(found.equal(again));
  });
}

// One number far from all others must not cost the rest their digits.
TEST(NormKernelsOfDevice, MomentsAboutAFirstNumberFarAway) {
  for_many_cases(2, kRealTypes, [](Random& random, at::ScalarType type) {
    const at::Tensor numbers = at::ones({1, 8, 40, 40}, at::kDouble);
    numbers.select(2, 0).select(2, 0).fill_(1024);
    const Interior x(random, Order::kChannelsLast, numbers, type);
    const at::Tensor found = empty_table({1, 8, 3});
    const at::Tensor expected = at::empty({1, 8, 3}, at::kDouble);
    tested_table<NormKernels>().plane_moments(x, found);
    NormKernels::kAten.plane_moments(x.exact(), expected);
    expect_near(found, expected, 1e-5);
  });
}

TEST(NormKernelsOfDevice, Normalise) {
  for_many_cases(30, kRealTypes, [](Random& random, at::ScalarType type) {
    const NormCase c(random);
    const PlaneNorm norm = draw_norm(random, c, type);
    const Interior x(random, c.order, draw_x(random, c, norm), type);
    const Interior added(random, c.order, random.uniform(c.shape, -1, 1), type);
    const Interior y(random, c.order, at::zeros(c.shape), type);
    const at::Tensor expected = at::empty(c.shape, at::kDouble);
    const bool adds = random.between(0, 1) == 1;
    tested_table<NormKernels>().normalise(x, on_device(norm, type),
                                          adds ? added.view() : at::Tensor(), y);
    NormKernels::kAten.normalise(x.exact(), norm, adds ? added.exact() : at::Tensor(), expected);
    expect_near(y, expected, rounding_of(type));
    y.expect_margins_untouched();
  });
}

// The output may take the place of the input or of what is added, and a NaN stays one.
TEST(NormKernelsOfDevice, NormaliseInPlace) {
  for_many_cases(6, kRealTypes, [](Random& random, at::ScalarType type) {
    const NormCase c(random);
    const PlaneNorm norm = draw_norm(random, c, type);
    const at::Tensor numbers = draw_x(random, c, norm);
    numbers.view(-1)[0] = std::numeric_limits<double>::quiet_NaN();
    const Interior x(random, Order::kChannelsLast, numbers, type);
    const at::Tensor expected = at::empty(c.shape, at::kDouble);
    NormKernels::kAten.normalise(x.exact(), norm, {}, expected);
    tested_table<NormKernels>().normalise(x, on_device(norm, type), {}, x);
    expect_near(x, expected, rounding_of(type));
    x.expect_margins_untouched();
  });
}

/// What backward reads; `y` tells the sign where something was added.
struct BackwardCase {
  NormCase c;
  PlaneNorm norm, norm_on_device;
  Interior x, y, grad_y;
  at::Tensor told, told_exact;

  BackwardCase(Random& random, at::ScalarType type)
      : c(random),
        norm(draw_norm(random, c, type)),
        norm_on_device(on_device(norm, type)),
        x(random, c.order, draw_x(random, c, norm), type),
        y(random, c.order, random.uniform(c.shape, -3, 9).clamp(0, 6), type),
        grad_y(random, c.order, random.uniform(c.shape, -1, 1), type) {
    if (random.between(0, 1) == 0) return;
    told = y.view();
    told_exact = y.exact();
  }
};

TEST(NormKernelsOfDevice, GradientSums) {
  for_many_cases(30, kRealTypes, [](Random& random, at::ScalarType type) {
    const BackwardCase b(random, type);
    const std::vector<int64_t> shape{b.c.rows, b.c.shape[1]};
    const at::Tensor dy = empty_table(shape), dy_xhat = empty_table(shape);
    const at::Tensor right_dy = at::empty(shape, at::kDouble), right = at::empty_like(right_dy);
    tested_table<NormKernels>().plane_gradient_sums(b.x, b.told, b.grad_y, b.norm_on_device, dy,
                                                    dy_xhat);
    NormKernels::kAten.plane_gradient_sums(b.x.exact(), b.told_exact, b.grad_y.exact(), b.norm,
                                           right_dy, right);
    expect_near(dy, right_dy, type == at::kDouble ? 1e-12 : 1e-5);
    expect_near(dy_xhat, right, type == at::kDouble ? 1e-12 : 1e-5);
  });
}

TEST(NormKernelsOfDevice, Gradient) {
  for_many_cases(30, kRealTypes, [](Random& random, at::ScalarType type) {
    const BackwardCase b(random, type);
    at::Tensor mean, mean_xhat, mean_here, mean_xhat_here;
    if (random.between(0, 2)) {
      mean = random.uniform({b.c.rows, b.c.cells}, -1, 1);
      mean_xhat = random.uniform({b.c.rows, b.c.cells}, -1, 1);
      mean_here = mean.to(tested_device());
      mean_xhat_here = mean_xhat.to(tested_device());
    }
    const bool adds = random.between(0, 1) == 1;
    const Interior dx(random, b.c.order, at::zeros(b.c.shape), type);
    const Interior dadded(random, b.c.order, at::zeros(b.c.shape), type);
    const at::Tensor right = at::empty(b.c.shape, at::kDouble), right_added = at::zeros_like(right);
    tested_table<NormKernels>().normalise_gradient(b.x, b.told, b.grad_y, b.norm_on_device,
                                                   mean_here, mean_xhat_here, dx,
                                                   adds ? dadded.view() : at::Tensor());
    NormKernels::kAten.normalise_gradient(b.x.exact(), b.told_exact, b.grad_y.exact(), b.norm, mean,
                                          mean_xhat, right, adds ? right_added : at::Tensor());
    expect_near(dx, right, rounding_of(type));
    expect_near(dadded, right_added, rounding_of(type));
    dx.expect_margins_untouched();
    dadded.expect_margins_untouched();
  });
}

}  // namespace
}  // namespace tessera::gpu_test
