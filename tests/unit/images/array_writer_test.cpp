// Image files written by boxes of many ranks, which end anywhere: TIFF and PNG read back as what
// was written, whole or not at all.

#include "tessera/images/array_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/images/open_array.h"
#include "tests/unit/geometry/random_layout.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/images/tiff_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::array_writer_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string numbers_of(const ArrayInfo& info, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(static_cast<size_t>(Box::whole(info.shape).volume() * bytes_of(info.type)), 0);
  for (char& byte : bytes) byte = static_cast<char>(random() >> 30 & 63);  // no NaN
  return bytes;
}

/// Writes random boxes of `num_ranks` joined writers at the same time, finishes `parts` of their
/// parts, and commits.
void write_by_ranks(const std::string& path, const ArrayInfo& info, const std::string& whole,
                    int num_ranks, int parts, uint64_t seed) {
  Random random(seed);
  const auto pieces = random_bisection(random, info.shape, num_ranks);
  const auto creator = create_array_writer(path, info);
  std::vector<std::unique_ptr<ArrayWriter>> writers;
  for (int rank = 0; rank < num_ranks; ++rank)
    writers.push_back(join_array_writer(path, creator->temporary_name(), info));
  const auto on_all = [&](const auto& action) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < num_ranks; ++rank) ranks.emplace_back(action, rank);
    for (std::thread& rank : ranks) rank.join();
  };
  on_all([&](int rank) {
    for (const Piece& piece : pieces)
      if (piece.rank == rank && !piece.box.empty())
        writers[static_cast<size_t>(rank)]->write(
            piece.box, cut(whole, info.shape, piece.box, bytes_of(info.type)).data());
    writers[static_cast<size_t>(rank)]->flush();
  });
  on_all([&](int rank) {
    if (rank < parts) writers[static_cast<size_t>(rank)]->finish_part(rank, num_ranks);
  });
  EXPECT_FALSE(fs::exists(path));
  creator->commit();
}

class ArrayWriterTest : public ::testing::Test {
 protected:
  ArrayWriterTest() {
    TIFFSetWarningHandler(nullptr);
    TIFFSetErrorHandler(nullptr);
  }
  void expect_written(const std::string& name, const ArrayInfo& info, const std::string& axes,
                      int parts = 4) {
    const std::string path = folder_ / name;
    const std::string whole = numbers_of(info, 3);
    write_by_ranks(path, info, whole, 4, parts, 11);
    EXPECT_EQ(names_in(folder_.path()), Names{name});
    const auto file = open_array(path);
    EXPECT_EQ(file->info().axes, axes);
    EXPECT_EQ(file->type(), info.type);
    ASSERT_EQ(Box::whole(file->shape()).volume(), Box::whole(info.shape).volume());
    EXPECT_EQ(read_whole(*file) == whole, true);
    expect_boxes_of(*file, whole, 4, 1);
    fs::remove(path);
  }
  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_F(ArrayWriterTest, TiffOfEveryLayout) {
  expect_written("a.tif", {.shape = {1100, 700}, .axes = "YX"}, "YX");
  expect_written("a.tif", {.shape = {100, 30}}, "YX", 0);
  expect_written("a.tif", {.shape = {600, 530, 3}, .axes = "YXC"}, "YXC", 2);
  expect_written("a.tiff", {.shape = {5, 130, 70}, .axes = "CYX"}, "CYX");
  expect_written("a.tiff", {.shape = {1, 13, 7}, .axes = "CYX"}, "YX");
  expect_written("a.btf", {.shape = {3, 4, 21, 17}}, "PYX");
  expect_written("a.tif", {.shape = {3, 40, 31}, .axes = "ZYX"}, "ZYX");
  expect_written("a.tif", {.shape = {2, 3, 20, 31}, .axes = "PZYX"}, "PZYX");
  expect_written("a.tif", {.shape = {2, 3, 40, 31}, .axes = "PCYX"}, "PCYX");
  expect_written("a.tif", {.shape = {2, 40, 31, 2}, .axes = "PYXC"}, "PYXC");
}

TEST_F(ArrayWriterTest, TiffOfEveryType) {
  for (const PixelType type :
       {PixelType::kUint8, PixelType::kInt8, PixelType::kUint16, PixelType::kInt16,
        PixelType::kUint32, PixelType::kInt32, PixelType::kUint64, PixelType::kInt64,
        PixelType::kFloat16, PixelType::kFloat32, PixelType::kFloat64}) {
    SCOPED_TRACE(name_of(type));
    expect_written("a.tif", {.shape = {40, 31, 2}, .axes = "YXC", .type = type}, "YXC");
    if (type == PixelType::kUint8 || type == PixelType::kUint16) {
      expect_written("a.png", {.shape = {40, 31, 3}, .axes = "YXC", .type = type}, "YXC");
      expect_written("a.png", {.shape = {40, 31}, .axes = "YX", .type = type}, "YX");
    }
  }
}

TEST_F(ArrayWriterTest, TheFrameComesBack) {
  const auto written = [&](const ArrayInfo& info) {
    const std::string path = folder_ / "a.tif";
    const auto writer = create_array_writer(path, info);
    writer->commit();
    return open_array(path)->info().frame;
  };
  ImageFrame frame{.spacing = {0.0005, 0.00025}};
  ImageFrame read = written({.shape = {20, 30}, .axes = "YX", .frame = frame});
  ASSERT_EQ(read.spacing.size(), 2u);
  EXPECT_NEAR(read.spacing[0], 0.0005, 1e-10);
  EXPECT_NEAR(read.spacing[1], 0.00025, 1e-10);
  frame.spacing = {5, 0.7, 0.8};
  read = written({.shape = {4, 20, 30}, .axes = "ZYX", .frame = frame});
  ASSERT_EQ(read.spacing.size(), 3u);
  EXPECT_NEAR(read.spacing[0], 5, 1e-6);
  EXPECT_NEAR(read.spacing[2], 0.8, 1e-6);
  frame = {};
  frame.geotransform = {500000.5, 10, 0, 4100000, 0, -20};
  frame.projection = "EPSG:32633";
  frame.no_data = -9999;
  EXPECT_EQ(written({.shape = {2, 20, 30}, .axes = "PYX", .frame = frame}), frame);
  frame.geotransform = {1, 2, 3, 4, 5, 6};  // turned
  frame.projection =
      "GEOGCS[\"WGS 84\",UNIT[\"degree\",1,AUTHORITY[\"EPSG\",\"9122\"]],"
      "AUTHORITY[\"EPSG\",\"4326\"]]";
  read = written({.shape = {20, 30}, .axes = "YX", .frame = frame});
  EXPECT_EQ(read.geotransform, frame.geotransform);
  EXPECT_EQ(read.projection, "EPSG:4326");
}

/// Tiles are compressed when they are whole, wherever boxes end: the scratch file never has the
/// size of the pixels.
TEST_F(ArrayWriterTest, TheTiffTakesTheSpaceOfCompressedTiles) {
  const ArrayInfo info{.shape = {3000, 4000}, .axes = "YX"};
  std::string whole(3000 * 4000, '\0');
  for (size_t at = 0; at < whole.size(); at += 997) whole[at] = static_cast<char>(at);
  const std::string path = folder_ / "a.tif";
  const auto writer = create_array_writer(path, info);
  struct stat scratch {};
  int64_t most = 0;
  for (int64_t y = 0; y < 3000; y += 300)
    for (int64_t x = 0; x < 4000; x += 700) {
      const Box box{{y, y + 300}, {x, std::min<int64_t>(x + 700, 4000)}};
      writer->write(box, cut(whole, info.shape, box, 1).data());
      ASSERT_EQ(::stat(writer->temporary_name().c_str(), &scratch), 0);
      most = std::max<int64_t>(most, scratch.st_blocks * 512);
    }
  EXPECT_LT(most, 4 << 20);  // one row of tiles that are not whole yet is 2 MiB
  EXPECT_LT(scratch.st_blocks * 512, 1 << 20);
  writer->finish_part(0, 1);
  writer->commit();
  EXPECT_EQ(read_whole(*open_array(path)) == whole, true);
}

/// What others read: tiles, deflate, BigTIFF.
TEST_F(ArrayWriterTest, TheTiffIsTiledAndCompressed) {
  const std::string path = folder_ / "a.tif";
  const auto writer = create_array_writer(path, {.shape = {2000, 1500, 3}, .axes = "YXC"});
  writer->commit();
  EXPECT_LT(fs::file_size(path), 100'000u);
  EXPECT_EQ(read_bytes(path).substr(0, 4), std::string("II\x2b\0", 4));
  TIFF* const file = TIFFOpen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  uint16_t compression = 0, photometric = 0;
  TIFFGetField(file, TIFFTAG_COMPRESSION, &compression);
  TIFFGetField(file, TIFFTAG_PHOTOMETRIC, &photometric);
  EXPECT_EQ(TIFFIsTiled(file), 1);
  EXPECT_EQ(compression, COMPRESSION_ADOBE_DEFLATE);
  EXPECT_EQ(photometric, PHOTOMETRIC_RGB);
  TIFFClose(file);
}

TEST_F(ArrayWriterTest, WhatIsNotCommittedLeavesNothing) {
  for (const std::string name : {"a.tif", "a.png"}) {
    SCOPED_TRACE(name);
    const std::string path = folder_ / name;
    write_bytes(path, "old");
    {
      const auto writer = create_array_writer(path, {.shape = {40, 30}, .axes = "YX"});
      const std::string zeros(1200, '\0');
      writer->write(Box::whole({40, 30}), zeros.data());
      writer->finish_part(0, 2);
      expect_refusal(
          [&] {
            create_array_writer(path, {.shape = {40, 30}, .axes = "YX"});
          },
          "another process is writing it");
      const auto guest =
          join_array_writer(path, writer->temporary_name(), {.shape = {40, 30}, .axes = "YX"});
      EXPECT_THROW(guest->commit(), InternalError);
    }
    EXPECT_EQ(read_bytes(path), "old");
    EXPECT_EQ(names_in(folder_.path()), Names{name});
    fs::remove(path);
  }
}

TEST_F(ArrayWriterTest, WhatAFormatDoesNotHoldIsRefused) {
  const auto refused = [&](const std::string& name, const ArrayInfo& info, const std::string& why) {
    expect_refusal([&] { create_array_writer(folder_ / name, info); }, why);
  };
  refused("a.jpg", {.shape = {4, 4}}, "known: .npy .tif .tiff .btf .png");
  refused("a", {.shape = {4, 4}}, "the ending is not one of an image");
  refused("a.png", {.shape = {4, 4}, .type = PixelType::kFloat32}, "uint8 or uint16");
  refused("a.png", {.shape = {2, 4, 4}}, "height x width");
  refused("a.tif", {.shape = {4}}, "a TIFF is height x width");
  refused("a.tif", {.shape = {4, 4, 2}, .axes = "YXZ"}, "a TIFF is height x width");
  refused("a.tif", {.shape = {4, 0}, .axes = "YX"}, "1 to 2147483647 pixels a side");
  refused("none/a.tif", {.shape = {4, 4}}, "No such file or directory");
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace tessera::array_writer_test
