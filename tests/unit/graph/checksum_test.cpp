#include "tessera/graph/checksum.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera::checksum_test {
namespace {

TEST(Checksum, StaysWhatItWas) {  // files of earlier versions are checked with it
  EXPECT_EQ(checksum_text(checksum(std::string_view("tessera"))), "7f4a1e4cd5bac455");
  EXPECT_EQ(checksum_text(checksum(at::arange(100, at::kFloat).view({4, 25}))), "b21898d4a4e8c37a");
}

TEST(Checksum, NoticesEveryFlippedBit) {
  std::string bytes(101, '\x5a');
  std::set<uint64_t> sums{checksum(bytes)};
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    sums.insert(checksum(bytes));
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  }
  EXPECT_EQ(sums.size(), 1 + bytes.size() * 8);
}

TEST(Checksum, TellsSizesApart) {
  std::set<uint64_t> sums;
  for (size_t size = 0; size < 200; ++size) sums.insert(checksum(std::string(size, '\0')));
  EXPECT_EQ(sums.size(), 200u);
}

TEST(Checksum, NoticesSwappedWords) {
  const at::Tensor x = at::arange(64, at::kLong);
  at::Tensor swapped = x.clone();
  swapped[3] = 11;
  swapped[11] = 3;
  EXPECT_NE(checksum(x), checksum(swapped));
}

TEST(Checksum, IsOfElementsTypeAndShape) {
  const at::Tensor x = at::arange(12, at::kFloat).view({3, 4});
  EXPECT_EQ(checksum(x), checksum(x.t().contiguous().t()));
  EXPECT_EQ(checksum(x), checksum(x.clone().set_requires_grad(true)));
  EXPECT_NE(checksum(x), checksum(x.view({4, 3})));
  EXPECT_NE(checksum(x), checksum(x.view(at::kInt)));
  EXPECT_NE(checksum(at::zeros({1})), checksum(-at::zeros({1})));
  EXPECT_NE(checksum(at::empty({0, 2})), checksum(at::empty({0, 3})));
}

TEST(Checksum, OfManyTensorsMindsTheirOrder) {
  const at::Tensor a = at::ones({2}), b = at::zeros({2}), none;
  EXPECT_EQ(checksum({a, b}), checksum({a.clone(), b.clone()}));
  EXPECT_NE(checksum({a, b}), checksum({b, a}));
  EXPECT_NE(checksum({a}), checksum({a, none}));
  EXPECT_NE(checksum(std::vector<at::Tensor>{}), checksum(std::vector{none}));
}

}  // namespace
}  // namespace tessera::checksum_test
