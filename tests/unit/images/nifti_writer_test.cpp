// What the writer writes, the reader reads: the reader is tested against files made by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tessera/images/array_writer.h"
#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::nifti_writer_test {
namespace {

class NiftiWriters : public ::testing::TestWithParam<std::string> {
 protected:
  NiftiWriters() { ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }
  ~NiftiWriters() override { ::unsetenv("XDG_CACHE_HOME"); }
  std::string path() const { return folder_ / ("out" + GetParam()); }

  /// Writes random numbers by two ranks and reads them back.
  void expect_round_trip(const ArrayInfo& info) {
    SCOPED_TRACE(info.axes + " " + to_string(info.shape));
    const Box whole = Box::whole(info.shape);
    const int64_t bytes = bytes_of(info.type);
    std::string content(static_cast<size_t>(whole.volume() * bytes), '\0');
    for (char& byte : content) byte = static_cast<char>(random_() % 100);
    const auto creator = create_array_writer(path(), info);
    const auto guest = join_array_writer(path(), creator->temporary_name(), info);
    // Cut across the last axis, so that runs are short.
    Box left = whole, right = whole;
    const int last = whole.num_axes() - 1;
    left[last].end = right[last].begin = whole[last].size() / 2;
    creator->write(left, cut(content, info.shape, left, bytes).data());
    guest->write(right, cut(content, info.shape, right, bytes).data());
    guest->flush();
    creator->flush();
    EXPECT_FALSE(std::ifstream(path()).good());
    creator->commit();
    const auto file = open_array(path());
    EXPECT_EQ(file->info().axes, info.axes);
    EXPECT_EQ(file->shape(), info.shape);
    EXPECT_EQ(file->type(), info.type);
    EXPECT_EQ(read_whole(*file), content);
    std::remove(path().c_str());
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  std::mt19937 random_{7};
};

TEST_P(NiftiWriters, EveryLayoutAndTypeComesBack) {
  expect_round_trip({.shape = {7, 9}, .axes = "YX", .type = PixelType::kUint8});
  expect_round_trip({.shape = {5, 7, 9}, .axes = "ZYX", .type = PixelType::kInt16});
  expect_round_trip({.shape = {2, 5, 7, 9}, .axes = "PZYX", .type = PixelType::kFloat32});
  expect_round_trip({.shape = {3, 5, 7, 9}, .axes = "CZYX", .type = PixelType::kFloat64});
  expect_round_trip({.shape = {3, 2, 5, 7, 9}, .axes = "CPZYX", .type = PixelType::kUint64});
  expect_round_trip({.shape = {5, 7, 9, 3}, .axes = "ZYXC", .type = PixelType::kUint8});
  // More voxels along an axis than version 1 can count.
  expect_round_trip({.shape = {2, 3, 40'000}, .axes = "ZYX", .type = PixelType::kInt8});
}

TEST_P(NiftiWriters, TheFrameComesBack) {
  // Turned and mirrored; float32 holds these numbers.
  const std::array<double, 12> affine{0, -0.75, 0, 12.5, 0, 0, 2, -8, 1.5, 0, 0, 3};
  const auto frame_after = [&](const std::array<double, 12>& matrix) {
    ArrayInfo info{.shape = {2, 3, 4}, .axes = "ZYX"};
    info.frame.affine = matrix;
    const auto writer = create_array_writer(path(), info);
    writer->commit();
    return open_array(path())->info().frame;
  };
  const ImageFrame frame = frame_after(affine);
  EXPECT_EQ(frame.affine, affine);
  EXPECT_EQ(frame.spacing, (std::vector<double>{2, 0.75, 1.5}));
  std::array<double, 12> sheared = affine;
  sheared[2] = 0.5;  // which the rotation cannot say, but the matrix can
  EXPECT_EQ(frame_after(sheared).affine, sheared);
}

TEST_P(NiftiWriters, WhatIsNotCommittedLeavesNothing) {
  {
    const auto writer = create_array_writer(path(), {.shape = {2, 3}, .axes = "YX"});
    expect_refusal(
        [&] {
          create_array_writer(path(), {.shape = {2, 3}, .axes = "YX"});
        },
        "another process is writing it");
  }
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{});
}

TEST_P(NiftiWriters, WhatNiftiCannotSayIsRefused) {
  const auto refused = [&](const ArrayInfo& info, const std::string& why) {
    expect_refusal([&] { create_array_writer(path(), info); }, why);
    EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{});
  };
  refused({.shape = {2, 3}, .axes = "XY"}, "axes 'XY'");
  refused({.shape = {2, 3}}, "axes ''");
  refused({.shape = {2, 2, 3, 3}, .axes = "PCYX"}, "axes 'PCYX'");
  refused({.shape = {2, 3}, .axes = "YX", .type = PixelType::kFloat16}, "no float16");
  refused({.shape = {2, 3, 2}, .axes = "YXC"}, "2 channels of uint8");
}

INSTANTIATE_TEST_SUITE_P(FlatAndPacked, NiftiWriters, ::testing::Values(".nii", ".nii.gz"));

/// The rotation alone must say the same as the matrix: programs differ in which they read.
TEST(NiftiRotation, SaysWhatTheMatrixSays) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 50; ++round) {
    double a = normal(random), b = normal(random), c = normal(random), d = normal(random);
    if (round % 3 == 0) a = 0;  // by half a turn
    const double length = std::sqrt(a * a + b * b + c * c + d * d);
    a /= length, b /= length, c /= length, d /= length;
    const double mirror = round % 2 == 0 ? -1 : 1;
    ArrayInfo info{.shape = {2, 2, 2}, .axes = "ZYX"};
    info.frame.affine = {2 * (a * a + b * b - c * c - d * d),
                         3 * 2 * (b * c - a * d),
                         mirror * 4 * 2 * (b * d + a * c),
                         1,
                         2 * 2 * (b * c + a * d),
                         3 * (a * a + c * c - b * b - d * d),
                         mirror * 4 * 2 * (c * d - a * b),
                         2,
                         2 * 2 * (b * d - a * c),
                         3 * 2 * (c * d + a * b),
                         mirror * 4 * (a * a + d * d - b * b - c * c),
                         3};
    create_array_writer(folder / "a.nii", info)->commit();
    std::string bytes = read_bytes(folder / "a.nii");
    bytes[254] = bytes[255] = 0;  // sform_code
    write_bytes(folder / "a.nii", bytes);
    const ImageFrame frame = open_array(folder / "a.nii")->info().frame;
    // The file has three of four numbers of the rotation, as float32.
    for (size_t i = 0; i < 12; ++i)
      EXPECT_NEAR((*frame.affine)[i], (*info.frame.affine)[i], 1e-4) << round << " " << i;
  }
}

}  // namespace
}  // namespace tessera::nifti_writer_test
