// Components against a flood fill.

#include "tessera/train/components.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::components_test {
namespace {

/// The pixels that can be reached from `start` over faces between pixels of its class.
std::vector<int64_t> flood(const at::Tensor& map, int64_t start) {
  const int64_t* labels = map.data_ptr<int64_t>();
  std::vector<bool> seen(map.numel(), false);
  std::vector<int64_t> pixels{start};
  seen[start] = true;
  for (size_t next = 0; next < pixels.size(); ++next)
    for (int64_t axis = 0; axis < map.dim(); ++axis)
      for (int64_t step : {-1, 1}) {
        const int64_t stride = map.stride(axis);
        const int64_t at = pixels[next] / stride % map.size(axis) + step;
        const int64_t neighbour = pixels[next] + step * stride;
        if (at < 0 || at >= map.size(axis) || seen[neighbour]) continue;
        if (labels[neighbour] != labels[start]) continue;
        seen[neighbour] = true;
        pixels.push_back(neighbour);
      }
  return pixels;
}

at::Tensor cleaned_by_flooding(const at::Tensor& map, int64_t which) {
  std::vector<int64_t> largest;
  for (int64_t pixel = 0; pixel < map.numel(); ++pixel)
    if (map.data_ptr<int64_t>()[pixel] == which)
      if (std::vector<int64_t> found = flood(map, pixel); found.size() > largest.size())
        largest = found;
  const at::Tensor cleaned = map.masked_fill(map.eq(which), 0).contiguous();
  for (int64_t pixel : largest) cleaned.data_ptr<int64_t>()[pixel] = which;
  return cleaned;
}

TEST(LargestComponent, IsThatOfAFloodFill) {
  at::manual_seed(3);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{40}, {1, 1}, {13, 17}, {20, 20}, {5, 6, 7}})
    for (int64_t which : {1, 2}) {
      const at::Tensor map = at::randint(3, shape, at::kLong);
      const at::Tensor cleaned = map.clone();
      keep_largest_component(cleaned, which, 0);
      EXPECT_TRUE(cleaned.equal(cleaned_by_flooding(map, which))) << map;
    }
}

TEST(LargestComponent, CornersDoNotConnect) {
  const at::Tensor map = at::tensor({1, 0, 0, 1, 1, 0}, at::kLong).view({2, 3});
  keep_largest_component(map, 1, 0);
  EXPECT_TRUE(map.equal(at::tensor({1, 0, 0, 1, 1, 0}, at::kLong).view({2, 3})));
  const at::Tensor apart = at::tensor({1, 0, 0, 0, 1, 1}, at::kLong).view({2, 3});
  keep_largest_component(apart, 1, 0);
  EXPECT_TRUE(apart.equal(at::tensor({0, 0, 0, 0, 1, 1}, at::kLong).view({2, 3})));
}

TEST(LargestComponent, OfAClassThatIsNotThere) {
  const at::Tensor map = at::ones({3, 3}, at::kLong);
  keep_largest_component(map, 2, 0);
  EXPECT_TRUE(map.equal(at::ones({3, 3}, at::kLong)));
}

}  // namespace
}  // namespace tessera::components_test
