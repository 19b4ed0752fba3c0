// Kernels made of ATen's functions beside the loops on the CPU: pooling of pieces, adaptive or not,
// and what undoes it.

#include "tests/unit/kernels/tables.h"

#include "tessera/kernels/adaptive_pool.h"
#include "tessera/kernels/pool.h"

namespace tessera::aten_pool_test {
namespace {

constexpr std::initializer_list<at::ScalarType> kAllTypes{at::kDouble, at::kFloat, at::kBFloat16};

/// A part of [0, size).
Range draw_part(Draw& draw, int64_t size) {
  const int64_t begin = draw.between(0, size - 1);
  return {begin, draw.between(begin + 1, size)};
}

template <class Axis>
Shape input_shape(const Shape& planes, const std::array<Axis, 3>& piece, int64_t num_spatial) {
  Shape shape = planes;
  for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) shape.push_back(piece[axis].in.size());
  return shape;
}

template <class Axis>
Shape output_shape(const Shape& planes, const std::array<Axis, 3>& piece, int64_t num_spatial) {
  Shape shape = planes;
  for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) shape.push_back(piece[axis].out.size());
  return shape;
}

Shape draw_planes(Draw& draw) { return {draw.between(1, 2), draw.between(1, 3)}; }

at::ScalarType draw_code(Draw& draw) { return draw.between(0, 1) ? at::kByte : at::kInt; }

enum class Taps { kDense, kDilated };

/// Some outputs of windows that overlap or leave gaps, and may reach over the image's end.
PoolPiece draw_pool(Draw& draw, int64_t num_spatial, Taps taps) {
  PoolPiece piece;
  for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) {
    PoolAxis& along = piece[axis];
    along.kernel = draw.between(1, 4);
    along.stride = draw.between(1, 4);
    along.dilation = taps == Taps::kDilated ? draw.between(1, 2) : 1;
    along.padding = draw.between(0, along.kernel / 2);
    const int64_t reach = (along.kernel - 1) * along.dilation + 1;
    along.input_size = reach + draw.between(0, 8);
    const int64_t over = along.input_size + 2 * along.padding - reach;
    int64_t outputs = over / along.stride + 1;
    const bool ceil_mode = draw.between(0, 2) == 0;
    if (ceil_mode && over % along.stride && along.tap(outputs, 0) < along.input_size) ++outputs;
    along.out = draw_part(draw, outputs);
    along.in = intersect(
        Range{along.tap(along.out.begin, 0), along.tap(along.out.end - 1, along.kernel - 1) + 1},
        Range{0, along.input_size});
  }
  return piece;
}

TEST(AtenKernels, MaxPooling) {
  for_many_draws(150, kAllTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const PoolPiece piece = draw_pool(draw, num_spatial, Taps::kDilated);
    const Shape planes = draw_planes(draw);
    const Shape from = input_shape(planes, piece, num_spatial),
                to = output_shape(planes, piece, num_spatial);
    const at::Tensor x = wild_numbers(draw, from, type), dy = any_numbers(draw, to, type);
    const Target y(draw, to, type), right(draw, to, type);
    const at::Tensor choices = at::empty({dy.numel()}, draw_code(draw));
    const at::Tensor right_choices = at::empty_like(choices);
    MaxPoolKernels::kAten.pool_maxima(piece, x, y, choices);
    MaxPoolKernels::kCpu.pool_maxima(piece, x, right, right_choices);
    expect_same(y, right);
    EXPECT_TRUE(choices.equal(right_choices));
    // Where windows overlap, narrow gradients are added up in float32 and rounded once.
    const at::ScalarType wide_type = type == at::kBFloat16 ? at::kFloat : type;
    const Target dx(draw, from, type), right_dx(draw, from, wide_type);
    MaxPoolKernels::kAten.pool_maxima_gradient(piece, dy, choices, dx);
    MaxPoolKernels::kCpu.pool_maxima_gradient(piece, dy.to(wide_type), choices, right_dx);
    expect_same(dx, at::Tensor(right_dx).to(type));
  });
}

TEST(AtenKernels, AveragePooling) {
  for_many_draws(150, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const PoolPiece piece = draw_pool(draw, num_spatial, Taps::kDense);
    const PoolDivisor divisor{draw.between(0, 1) == 1, draw.between(0, 2) ? 0 : 3};
    const Shape planes = draw_planes(draw);
    const Shape from = input_shape(planes, piece, num_spatial),
                to = output_shape(planes, piece, num_spatial);
    const at::Tensor x = any_numbers(draw, from, type), dy = any_numbers(draw, to, type);
    const Target y(draw, to, type), right(draw, to, type);
    AveragePoolKernels::kAten.pool_averages(piece, divisor, x, y);
    AveragePoolKernels::kCpu.pool_averages(piece, divisor, x, right);
    expect_near(y, right, rounding_of(type));
    const Target dx(draw, from, type), right_dx(draw, from, type);
    AveragePoolKernels::kAten.pool_averages_gradient(piece, divisor, dy, dx);
    AveragePoolKernels::kCpu.pool_averages_gradient(piece, divisor, dy, right_dx);
    expect_near(dx, right_dx, rounding_of(type));
  });
}

// The box holds some of the chosen pixels, all, or none; windows that overlap may choose the same.
TEST(AtenKernels, MaxUnpooling) {
  for_many_draws(150, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const PoolPiece piece = draw_pool(draw, num_spatial, Taps::kDilated);
    std::array<Range, 3> box{Range{0, 1}, Range{0, 1}, Range{0, 1}};
    const Shape planes = draw_planes(draw);
    Shape inside = planes;
    for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) {
      box[axis] = draw_part(draw, piece[axis].input_size);
      inside.push_back(box[axis].size());
    }
    const Shape pooled = output_shape(planes, piece, num_spatial);
    const at::Tensor x = wild_numbers(draw, input_shape(planes, piece, num_spatial), type);
    const at::Tensor values = any_numbers(draw, pooled, type);
    const Target y(draw, inside, type), right(draw, inside, type);
    const at::Tensor places = at::empty({values.numel()}, at::kInt);
    const at::Tensor right_places = at::empty_like(places);
    MaxUnpoolKernels::kAten.unpool_maxima(piece, box, values, x, y, places);
    MaxUnpoolKernels::kCpu.unpool_maxima(piece, box, values, x, right, right_places);
    expect_same(y, right);
    EXPECT_TRUE(places.equal(right_places));
    const at::Tensor dy = any_numbers(draw, inside, type);
    const Target back(draw, pooled, type), right_back(draw, pooled, type);
    MaxUnpoolKernels::kAten.unpool_maxima_gradient(piece, dy, places, back);
    MaxUnpoolKernels::kCpu.unpool_maxima_gradient(piece, dy, places, right_back);
    expect_same(back, right_back);
  });
}

TEST(AtenKernels, UnpoolingOfNothing) {
  const at::Tensor none = at::empty({1, 1, 0, 3}, at::kDouble), y = at::ones({1, 1, 2, 2});
  MaxUnpoolKernels::kAten.unpool_maxima({}, {Range{0, 1}, Range{0, 2}, Range{0, 2}}, none, none, y,
                                        at::empty({0}, at::kInt));
  EXPECT_TRUE(y.equal(at::zeros_like(y)));
}

/// Fewer outputs than inputs, as many, or more.
AdaptivePiece draw_adaptive(Draw& draw, int64_t num_spatial) {
  AdaptivePiece piece;
  for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) {
    AdaptiveAxis& along = piece[axis];
    along.input_size = draw.between(1, 12);
    along.output_size =
        draw.between(0, 2) ? draw.between(1, along.input_size) : draw.between(1, 12);
    along.out = draw_part(draw, along.output_size);
    along.in = {along.window(along.out.begin).begin, along.window(along.out.end - 1).end};
  }
  return piece;
}

TEST(AtenKernels, AdaptiveAveragePooling) {
  for_many_draws(150, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const AdaptivePiece piece = draw_adaptive(draw, num_spatial);
    const Shape planes = draw_planes(draw);
    const Shape from = input_shape(planes, piece, num_spatial),
                to = output_shape(planes, piece, num_spatial);
    const at::Tensor x = any_numbers(draw, from, type), dy = any_numbers(draw, to, type);
    const Target y(draw, to, type), right(draw, to, type);
    AdaptivePoolKernels::kAten.pool_adaptive_averages(piece, x, y);
    AdaptivePoolKernels::kCpu.pool_adaptive_averages(piece, x, right);
    expect_near(y, right, rounding_of(type));
    const Target dx(draw, from, type), right_dx(draw, from, type);
    AdaptivePoolKernels::kAten.pool_adaptive_averages_gradient(piece, dy, dx);
    AdaptivePoolKernels::kCpu.pool_adaptive_averages_gradient(piece, dy, right_dx);
    expect_near(dx, right_dx, rounding_of(type));
  });
}

TEST(AtenKernels, AdaptiveMaxPooling) {
  for_many_draws(150, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const AdaptivePiece piece = draw_adaptive(draw, num_spatial);
    const Shape planes = draw_planes(draw);
    const Shape from = input_shape(planes, piece, num_spatial),
                to = output_shape(planes, piece, num_spatial);
    const at::Tensor x = wild_numbers(draw, from, type), dy = any_numbers(draw, to, type);
    const Target y(draw, to, type), right(draw, to, type);
    const at::Tensor choices = at::empty({dy.numel()}, at::kInt);
    const at::Tensor right_choices = at::empty_like(choices);
    AdaptivePoolKernels::kAten.pool_adaptive_maxima(piece, x, y, choices);
    AdaptivePoolKernels::kCpu.pool_adaptive_maxima(piece, x, right, right_choices);
    expect_same(y, right);
    EXPECT_TRUE(choices.equal(right_choices)) << choices << right_choices;
    const Target dx(draw, from, type), right_dx(draw, from, type);
    AdaptivePoolKernels::kAten.pool_adaptive_maxima_gradient(piece, dy, choices, dx);
    AdaptivePoolKernels::kCpu.pool_adaptive_maxima_gradient(piece, dy, choices, right_dx);
    expect_near(dx, right_dx, rounding_of(type));
  });
}

}  // namespace
}  // namespace tessera::aten_pool_test
