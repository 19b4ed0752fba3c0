// Numbers one after the other in a file: any box has the numbers of the whole, and no more is read
// from the disk than lies between the rows of a box.

#include "tessera/images/flat_array.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/unit/images/array_boxes.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::flat_array_test {
namespace {

/// What this process has read by calls of the system; nothing where it does not count.
int64_t bytes_read() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  int64_t bytes = -1;
  counts >> name >> bytes;
  return name == "rchar:" ? bytes : -1;
}

class FlatArrayTest : public ::testing::Test {
 protected:
  /// Bytes that count up, modulo 251.
  FlatArray made(const Shape& shape, bool fortran_order = false) {
    whole_.resize(static_cast<size_t>(Box::whole(shape).volume()) + 5);
    for (size_t i = 0; i < whole_.size(); ++i) whole_[i] = static_cast<char>(i % 251);
    write_bytes(folder_ / "a.raw", whole_);
    whole_.erase(0, 5);
    FlatLayout layout;
    layout.offset = 5;
    layout.shape = shape;
    layout.fortran_order = fortran_order;
    return {InputFile(folder_ / "a.raw", "raw"), layout};
  }
  static std::string read(const FlatArray& array, const Box& box) {
    std::string bytes(static_cast<size_t>(box.volume()), '\x5a');
    array.read(box, bytes.data());
    return bytes;
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  std::string whole_;
};

TEST_F(FlatArrayTest, BoxesHaveTheNumbersOfTheWhole) {
  std::mt19937_64 random(1);
  for (const Shape& shape :
       {Shape{7}, {3, 5000}, {20, 3, 4}, {2, 1, 70, 130}, {40, 2, 3000}, {2, 90'000}, {1, 1, 1}}) {
    const FlatArray array = made(shape);
    for (int i = 0; i < 40; ++i) {
      const Box box = random_box(random, shape);
      EXPECT_EQ(read(array, box), cut(whole_, shape, box, 1))
          << to_string(box) << " of " << to_string(shape);
    }
  }
}

/// A patch of a volume lies in one plane after the other, with most of each plane between.
TEST_F(FlatArrayTest, APatchDoesNotReadThePlanesAroundIt) {
  if (bytes_read() < 0) GTEST_SKIP() << "the system does not count what is read";
  const auto read_for = [&](const FlatArray& array, const Box& box) {
    const int64_t before = bytes_read();
    read(array, box);
    return bytes_read() - before;
  };
  const FlatArray volume = made({64, 256, 256});
  const Box patch{{10, 42}, {100, 132}, {50, 82}};
  // 32 planes with 32 rows each, of 256 bytes; all that lies between the first and the last byte
  // are 2 MB.
  EXPECT_LT(read_for(volume, patch), 32 * 32 * 256 + 4096);
  EXPECT_GT(read_for(volume, patch), 32 * 32 * 32);
  // Runs of several rows: whole rows of two planes.
  EXPECT_LT(read_for(volume, {{10, 12}, {100, 110}, {0, 256}}), 2 * 10 * 256 + 4096);
  // Small planes are read as one piece.
  const FlatArray small = made({4000, 4, 4});
  EXPECT_LT(read_for(small, {{0, 4000}, {0, 2}, {1, 3}}), 4000 * 16 + 4096);
  EXPECT_LT(read_for(made({2, 20'000}, true), {{0, 1}, {0, 20'000}}), 2 * 20'000 + 4096);
}

}  // namespace
}  // namespace tessera::flat_array_test
