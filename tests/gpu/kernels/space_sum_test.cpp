// Sums over space beside those in float64, on the numbers as their type has rounded them.

#include "tessera/kernels/space_sum.h"

#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

TEST(SpaceSumOnDevice, InAnyOrderOfAxes) {
  for_many_cases(60, kRealTypes, [](Random& random, at::ScalarType type) {
    std::vector<int64_t> shape{random.between(1, 3), random.one_of({1, 3, 8, 24, 64, 520})};
    const int64_t num_spatial = random.between(1, 3), most = shape[1] > 100 ? 5 : 14;
    for (int64_t axis = 0; axis < num_spatial; ++axis)
      shape.push_back(random.between(1, num_spatial == 1 && shape[1] < 100 ? 5000 : most));
    const Interior x(random, random.between(0, 3) ? Order::kChannelsLast : Order::kContiguous,
                     random.uniform(shape, -1, 1), type);
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor room =
        at::full({shape[0], 2, shape[1]}, 7, at::TensorOptions(tested_device()).dtype(wide));
    const at::Tensor sums =
        random.between(0, 1) ? room.select(1, 1) : room.flatten(0, 1).narrow(0, 0, shape[0]);
    tested_table<SpaceSumKernels>().sum_space(x, 0.5, sums);
    const at::Tensor flat = x.exact().flatten(2);
    const double terms = flat.abs().sum(2).max().item<double>();
    expect_near(sums, flat.sum(2) * 0.5, (type == at::kDouble ? 1e-13 : 1e-6) * (1 + terms));
    EXPECT_EQ((room == 7).sum().item<int64_t>(), sums.numel());
  });
}

}  // namespace
}  // namespace tessera::gpu_test
