// Interpolation and its adjoint beside ATen's in float64, on pieces.

#include "tessera/kernels/interpolate.h"
#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

struct InterpolateCase {
  PieceSources sources;
  std::vector<int64_t> in, out;  // shapes
  Order order;

  explicit InterpolateCase(Random& random) {
    in = {random.between(1, 2), random.one_of({1, 3, 8, 12, 16, 64})};
    out = in;
    const int num_spatial = static_cast<int>(random.between(1, 3));
    const auto mode = static_cast<InterpolationMode>(random.between(0, 3));
    for (int missing = 0; missing < 3 - num_spatial; ++missing) sources[missing].resize(1);
    for (int i = 0; i < num_spatial; ++i) {
      const int64_t input_size = random.between(1, 9);
      const int64_t output_size =
          random.between(0, 1) ? 2 * input_size : random.between(1, 3 * input_size);
      const Interpolation axis{mode, Corners::kNotAligned, input_size, output_size, 0};
      const int64_t begin = random.between(0, 1) * random.between(0, output_size - 1);
      const Range outputs{begin, begin + random.between(1, output_size - begin)};
      const Range reads = axis.needed(outputs);
      for (int64_t o = outputs.begin; o < outputs.end; ++o) {
        Interpolation::Source source = axis.source(o);
        for (int tap = 0; tap < source.num_taps; ++tap) source.index[tap] -= reads.begin;
        sources[3 - num_spatial + i].push_back(source);
      }
      in.push_back(reads.size());
      out.push_back(outputs.size());
    }
    order = random.between(0, 4) ? Order::kChannelsLast : Order::kContiguous;
  }
};

TEST(InterpolateKernelsOfDevice, ForwardAndAdjoint) {
  for_many_cases(60, kRealTypes, [](Random& random, at::ScalarType type) {
    const InterpolateCase c(random);
    const Interior x(random, c.order, random.uniform(c.in, -1, 1), type);
    const Interior y(random, c.order, at::ones(c.out), type);
    const Interior dy(random, c.order, random.uniform(c.out, -1, 1), type);
    const Interior dx(random, c.order, at::ones(c.in), type);
    const InterpolateKernels& table = table_for<InterpolateKernels>(type);
    table.interpolate_piece(c.sources, x, y);
    table.interpolate_piece_adjoint(c.sources, dy, dx);

    const at::Tensor right_y = at::empty(c.out, at::kDouble),
                     right_dx = at::empty(c.in, at::kDouble);
    InterpolateKernels::kAten.interpolate_piece(c.sources, x.exact(), right_y);
    InterpolateKernels::kAten.interpolate_piece_adjoint(c.sources, dy.exact(), right_dx);
    expect_near(y, right_y, rounding_of(type));
    expect_near(dx, right_dx, rounding_of(type));
    y.expect_margins_untouched();
    dx.expect_margins_untouched();
  });
}

}  // namespace
}  // namespace tessera::gpu_test
