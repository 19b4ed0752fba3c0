// Data sets by name, and where data is not finite.

#include "tessera/data/open.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/base/error.h"
#include "tessera/data/finite.h"
#include "tests/unit/data/npy_bytes.h"

namespace tessera::open_test {
namespace {

TEST(Open, KnowsItsNames) {
  EXPECT_EQ(open_dataset("synthetic", {1, 64}, 1)->size(), 64);
  EXPECT_EQ(open_dataset("synthetic:samples=7", {1, 64}, 1)->size(), 7);
  for (const char* spec : {"", ":", "tiff:x", "Synthetic", "npyx:a,b"})
    EXPECT_NE(message_of<InvalidInput>([&] {
                open_dataset(spec, {1, 64}, 1);
              }).find("not a known data set"),
              std::string::npos);
  for (const char* spec : {"npy", "npy:", "npy:a.npy,", "npy:,b.npy"})
    EXPECT_NE(message_of<InvalidInput>([&] {
                open_dataset(spec, {1, 64}, 1);
              }).find("does not name files"),
              std::string::npos);
}

TEST(FirstNonFinite, FindsTheFirstInRowMajorOrder) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf}) {
    at::Tensor tensor = at::zeros({2, 3, 4, 5}, type);
    EXPECT_FALSE(first_non_finite(tensor));
    tensor[1][2][3][4] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(first_non_finite(tensor), (Shape{1, 2, 3, 4}));
    tensor[1][0][2][1] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(first_non_finite(tensor), (Shape{1, 0, 2, 1}));
    EXPECT_EQ(first_non_finite(tensor.slice(3, 1, 3).slice(0, 1, 2)), (Shape{0, 0, 2, 0}));
    EXPECT_FALSE(first_non_finite(tensor.slice(0, 0, 1)));
  }
  EXPECT_FALSE(first_non_finite(at::empty({0, 3})));
  EXPECT_EQ(first_non_finite(at::full({}, std::nan(""))), Shape());
}

}  // namespace
}  // namespace tessera::open_test
