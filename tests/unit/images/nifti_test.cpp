// NIfTI files of both versions and byte orders against numbers made by hand.

#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "tessera/images/open_array.h"
#include "tests/unit/images/nifti_bytes.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::nifti_test {
namespace {

using Version = NiftiBytes::Version;
using Order = NiftiBytes::Order;

template <class T>
std::vector<T> counted_up(int64_t count) {
  std::vector<T> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), T{0});
  return numbers;
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class Nifti : public ::testing::TestWithParam<std::tuple<Version, Order>> {
 protected:
  Nifti() { ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }
  ~Nifti() override { ::unsetenv("XDG_CACHE_HOME"); }

  NiftiBytes made() const { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
  std::unique_ptr<ArrayFile> opened(const NiftiBytes& bytes) const { return opened(bytes.bytes()); }
  std::unique_ptr<ArrayFile> opened(const std::string& bytes) const {
    write_bytes(folder_ / "a.nii", bytes);
    return open_array(folder_ / "a.nii");
  }
  template <class T>
  void expect_type(int code, PixelType type) const {
    const auto file = opened(made()
                                 .dims({5, 4, 3})
                                 .type(code, 8 * static_cast<int>(sizeof(T)))
                                 .numbers(counted_up<T>(60)));
    EXPECT_EQ(file->type(), type);
    EXPECT_EQ(file->shape(), (Shape{3, 4, 5}));
    EXPECT_EQ(file->info().axes, "ZYX");
    EXPECT_EQ(numbers_of<T>(*file), counted_up<T>(60));
    expect_boxes_of_whole(*file);
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_P(Nifti, EveryTypeIsReadByBoxes) {
  expect_type<uint8_t>(2, PixelType::kUint8);
  expect_type<int16_t>(4, PixelType::kInt16);
  expect_type<int32_t>(8, PixelType::kInt32);
  expect_type<float>(16, PixelType::kFloat32);
  expect_type<double>(64, PixelType::kFloat64);
  expect_type<int8_t>(256, PixelType::kInt8);
  expect_type<uint16_t>(512, PixelType::kUint16);
  expect_type<uint32_t>(768, PixelType::kUint32);
  expect_type<int64_t>(1024, PixelType::kInt64);
  expect_type<uint64_t>(1280, PixelType::kUint64);
}

TEST_P(Nifti, AxesAreThoseThatTheFileHas) {
  const auto axes = [&](const std::vector<int64_t>& dims) {
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    const auto file = opened(made().dims(dims).type(2, 8).numbers(counted_up<uint8_t>(count)));
    expect_boxes_of_whole(*file, 10);
    return file->info().axes + " " + to_string(file->shape());
  };
  EXPECT_EQ(axes({5, 4}), "YX 4x5");
  EXPECT_EQ(axes({5, 4, 1}), "ZYX 1x4x5");
  EXPECT_EQ(axes({5, 4, 3, 2}), "PZYX 2x3x4x5");
  EXPECT_EQ(axes({5, 4, 3, 1, 2}), "CZYX 2x3x4x5");
  EXPECT_EQ(axes({5, 4, 3, 2, 2}), "CPZYX 2x2x3x4x5");
  EXPECT_EQ(axes({5, 4, 3, 1, 1, 1, 1}), "ZYX 3x4x5");
}

TEST_P(Nifti, ColoursAreTheLastAxis) {
  const auto file =
      opened(made().dims({3, 2, 2}).type(128, 24).numbers(counted_up<uint8_t>(36)).slope(2, 1));
  EXPECT_EQ(file->info().axes, "ZYXC");
  EXPECT_EQ(file->shape(), (Shape{2, 2, 3, 3}));
  EXPECT_EQ(numbers_of<uint8_t>(*file), counted_up<uint8_t>(36));  // colours are never scaled
}

TEST_P(Nifti, ScaledNumbersAreReal) {
  const auto file =
      opened(made().dims({2, 2}).type(4, 16).slope(0.5, -3).numbers<int16_t>({0, 1, -7, 32767}));
  EXPECT_EQ(file->type(), PixelType::kFloat32);
  EXPECT_EQ(numbers_of<float>(*file), (std::vector<float>{-3, -2.5, -6.5, 16380.5}));
  const auto wide =
      opened(made().dims({2, 1}).type(8, 32).slope(0.5, 0).numbers<int32_t>({1, 2147483647}));
  EXPECT_EQ(wide->type(), PixelType::kFloat64);
  EXPECT_EQ(numbers_of<double>(*wide), (std::vector<double>{0.5, 1073741823.5}));
  expect_boxes_of_whole(*file);
}

TEST_P(Nifti, TheMatrixSaysWhereTheImageLies) {
  const std::vector<double> rows{-2, 0, 0, 90, 0, 3, 0, -126, 0, 0, 4, -72};
  const auto file = opened(made()
                               .dims({1, 1, 1})
                               .type(2, 8)
                               .pixdim({1, 7, 7, 7})
                               .qform(1, {0, 0, 0, 1, 2, 3})
                               .sform(4, rows)
                               .numbers<uint8_t>({9}));
  const ImageFrame& frame = file->info().frame;
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), frame.affine->begin()));
  EXPECT_EQ(frame.spacing, (std::vector<double>{4, 3, 2}));
}

TEST_P(Nifti, WithoutAMatrixTheRotationDoes) {
  // A quarter turn about z (a = d = sqrt(1/2)) and the third axis turned round: x goes to y, y to
  // -x, z to -z.
  const auto file = opened(made()
                               .dims({1, 1, 1})
                               .type(2, 8)
                               .units(3)  // microns
                               .pixdim({-1, 2000, 3000, 4000})
                               .qform(1, {0, 0, std::sqrt(0.5), 10000, 20000, 30000})
                               .numbers<uint8_t>({9}));
  const std::vector<double> rows{0, -3, 0, 10, 2, 0, 0, 20, 0, 0, -4, 30};
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR((*file->info().frame.affine)[i], rows[i], 1e-5) << i;
}

TEST_P(Nifti, WithoutBothTheVoxelsSizeDoes) {
  const auto file = opened(
      made().dims({1, 1}).type(2, 8).units(1).pixdim({0, 0.5, 0.25, 0}).numbers<uint8_t>({9}));
  EXPECT_EQ(file->info().frame.spacing, (std::vector<double>{250, 500}));
  const auto silent = opened(made().dims({1, 1}).type(2, 8).numbers<uint8_t>({9}));
  EXPECT_EQ(silent->info().frame, ImageFrame{});
}

TEST_P(Nifti, PackedFilesAreTheSame) {
  const NiftiBytes bytes =
      made().dims({50, 40, 30}).type(4, 16).numbers(counted_up<int16_t>(60000));
  const std::string content = bytes.bytes();
  // In two members, as some programs pack.
  write_bytes(folder_ / "a.nii.gz", gzip(content.substr(0, 5000)) + gzip(content.substr(5000)));
  const auto file = open_array(folder_ / "a.nii.gz");
  EXPECT_EQ(numbers_of<int16_t>(*file), counted_up<int16_t>(60000));
  expect_boxes_of_whole(*file);
}

TEST_P(Nifti, WhatIsNotUnderstoodIsRefused) {
  const auto refused = [&](const NiftiBytes& bytes, const std::string& why) {
    expect_refusal([&] { opened(bytes); }, why);
  };
  const auto valid = [&] { return made().dims({2, 2}).type(2, 8).numbers<uint8_t>({1, 2, 3, 4}); };
  EXPECT_EQ(opened(valid())->shape(), (Shape{2, 2}));
  refused(made().dims({2, 3}).type(2, 8).numbers<uint8_t>({1, 2, 3, 4}), "it is truncated");
  refused(valid().type(32, 64), "datatype 32 is not supported");
  refused(valid().type(2, 16), "the header says 16");
  refused(valid().dims({2, -2}), "has -2 voxels");
  refused(valid().dims({2, 2, 1, 1, 1, 2}), "axis 6");
  refused(valid().slope(1, std::nan("")), "scl_inter is nan");
  expect_refusal([&] { opened(std::string("not an image")); }, "is not a NIfTI file");
}

INSTANTIATE_TEST_SUITE_P(BothVersionsAndOrders, Nifti,
                         ::testing::Combine(::testing::Values(Version::kFirst, Version::kSecond),
                                            ::testing::Values(Order::kLittle, Order::kBig)));

class PackedNifti : public ::testing::Test {
 protected:
  PackedNifti() { ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }
  ~PackedNifti() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("TESSERA_CACHE_LIMIT");
  }
  /// Noise after the first number, which hardly packs.
  static std::vector<uint8_t> numbers(uint8_t value) {
    std::mt19937 random(value);
    std::vector<uint8_t> result(100'000);
    for (uint8_t& number : result) number = static_cast<uint8_t>(random());
    result[0] = value;
    return result;
  }
  static std::string volume(uint8_t value) {
    return NiftiBytes(Version::kFirst, Order::kLittle)
        .dims({100, 100, 10})
        .type(2, 8)
        .numbers(numbers(value))
        .bytes();
  }
  std::vector<std::string> copies() const {
    std::vector<std::string> names = names_in(folder_ / "cache/tessera");
    std::erase_if(names, [](const std::string& name) { return name.starts_with("."); });
    return names;
  }
  uint8_t first_number(const std::string& name) const {
    uint8_t number = 0;
    open_array(folder_ / name)->read(Box{{0, 1}, {0, 1}, {0, 1}}, &number);
    return number;
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_F(PackedNifti, ManyAtOnceMakeOneCopy) {
  write_bytes(folder_ / "a.nii.gz", gzip(volume(7)));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { right += first_number("a.nii.gz") == 7 ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(copies().size(), 1u);
}

TEST_F(PackedNifti, AFileThatHasChangedIsUnpackedAnew) {
  write_bytes(folder_ / "a.nii.gz", gzip(volume(7)));
  EXPECT_EQ(first_number("a.nii.gz"), 7);
  write_bytes(folder_ / "b.nii.gz", gzip(volume(8)));
  std::rename((folder_ / "b.nii.gz").c_str(), (folder_ / "a.nii.gz").c_str());
  EXPECT_EQ(first_number("a.nii.gz"), 8);
}

TEST_F(PackedNifti, ADamagedCopyIsMadeAnew) {
  write_bytes(folder_ / "a.nii.gz", gzip(volume(7)));
  EXPECT_EQ(first_number("a.nii.gz"), 7);
  write_bytes(folder_ / ("cache/tessera/" + copies().at(0)), "cut short");
  EXPECT_EQ(first_number("a.nii.gz"), 7);
}

TEST_F(PackedNifti, CopiesStayWithinTheLimitAndOpenOnesReadable) {
  ::setenv("TESSERA_CACHE_LIMIT", "250KB", 1);
  write_bytes(folder_ / "0.nii.gz", gzip(volume(0)));
  const auto oldest = open_array(folder_ / "0.nii.gz");
  for (uint8_t i = 1; i < 5; ++i) {
    const std::string name = fmt::format("{}.nii.gz", i);
    write_bytes(folder_ / name, gzip(volume(i)));
    EXPECT_EQ(first_number(name), i);
  }
  EXPECT_EQ(copies().size(), 2u);
  EXPECT_EQ(numbers_of<uint8_t>(*oldest), numbers(0));
}

TEST_F(PackedNifti, ContentThatIsNotWhatTheHeaderSaysIsRefused) {
  const std::string valid = volume(7);
  const auto refused = [&](const std::string& packed, const std::string& why) {
    write_bytes(folder_ / "a.nii.gz", packed);
    expect_refusal([&] { open_array(folder_ / "a.nii.gz"); }, why);
    EXPECT_EQ(copies().size(), 0u);
  };
  refused(gzip(valid + std::string(10'000'000, '\0')), "the unpacked file has more");
  refused(gzip(valid.substr(0, 5000)), "the unpacked file has 5000");
  refused(gzip(valid).substr(0, 200), "breaks off");
  refused(gzip(valid) + "x", "breaks off");
  refused(gzip(valid) + "more", "is not a gzip file");
  refused(valid, "is not a gzip file");
  refused("", "breaks off");
  std::string damaged = gzip(valid);
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  refused(damaged, "(incorrect data check)");
  const std::string bomb = NiftiBytes(Version::kSecond, Order::kLittle)
                               .dims({1 << 20, 1 << 20, 1 << 20})
                               .type(2, 8)
                               .bytes();
  refused(gzip(bomb), "packed bytes can hold");
}

}  // namespace
}  // namespace tessera::nifti_test
