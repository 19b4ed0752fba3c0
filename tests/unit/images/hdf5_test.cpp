// HDF5 files, written by the library itself.

#include <gtest/gtest.h>
#include <hdf5.h>

#include <numeric>

#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::hdf5_test {
namespace {

const std::vector<hsize_t> kSizes{6, 20, 30};
constexpr size_t kCount = 6 * 20 * 30;

/// A file that is being written; arrays are counted up.
class Hdf5Made {
 public:
  explicit Hdf5Made(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Hdf5Made() { H5Fclose(file_); }
  hid_t file() const { return file_; }

  template <class T>
  void add(const char* name, hid_t stored, hid_t memory, hid_t creation = H5P_DEFAULT) const {
    std::vector<T> numbers(kCount);
    std::iota(numbers.begin(), numbers.end(), T{0});
    const hid_t space = H5Screate_simple(3, kSizes.data(), nullptr);
    const hid_t array = H5Dcreate2(file_, name, stored, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(array, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
    H5Dclose(array);
    H5Sclose(space);
  }

 private:
  hid_t file_;
};

class Hdf5 : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "a.h5"; }

  template <class T>
  void expect_type(hid_t stored, hid_t memory, PixelType type, hid_t creation = H5P_DEFAULT) {
    Hdf5Made(path()).add<T>("image", stored, memory, creation);
    const auto file = open_array(path());
    EXPECT_EQ(file->type(), type);
    EXPECT_EQ(file->shape(), (Shape{6, 20, 30}));
    std::vector<T> expected(kCount);
    std::iota(expected.begin(), expected.end(), T{0});
    EXPECT_EQ(numbers_of<T>(*file), expected);
    expect_boxes_of_whole(*file, 10);
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_F(Hdf5, EveryTypeAndByteOrderIsReadByBoxes) {
  expect_type<uint8_t>(H5T_STD_U8LE, H5T_NATIVE_UINT8, PixelType::kUint8);
  expect_type<int8_t>(H5T_STD_I8LE, H5T_NATIVE_INT8, PixelType::kInt8);
  expect_type<uint16_t>(H5T_STD_U16BE, H5T_NATIVE_UINT16, PixelType::kUint16);
  expect_type<int16_t>(H5T_STD_I16LE, H5T_NATIVE_INT16, PixelType::kInt16);
  expect_type<uint32_t>(H5T_STD_U32LE, H5T_NATIVE_UINT32, PixelType::kUint32);
  expect_type<int32_t>(H5T_STD_I32BE, H5T_NATIVE_INT32, PixelType::kInt32);
  expect_type<uint64_t>(H5T_STD_U64LE, H5T_NATIVE_UINT64, PixelType::kUint64);
  expect_type<int64_t>(H5T_STD_I64BE, H5T_NATIVE_INT64, PixelType::kInt64);
  expect_type<float>(H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, PixelType::kFloat32);
  expect_type<double>(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, PixelType::kFloat64);
}

TEST_F(Hdf5, ChunksAndFiltersAreReadByBoxes) {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[3] = {4, 7, 9};
  H5Pset_chunk(creation, 3, chunk);
  expect_type<int32_t>(H5T_STD_I32LE, H5T_NATIVE_INT32, PixelType::kInt32, creation);
  EXPECT_EQ(open_array(path())->info().block, (Shape{4, 7, 9}));
  H5Pset_shuffle(creation);
  H5Pset_deflate(creation, 6);
  H5Pset_fletcher32(creation);
  expect_type<uint16_t>(H5T_STD_U16LE, H5T_NATIVE_UINT16, PixelType::kUint16, creation);
  H5Pclose(creation);
  expect_type<uint8_t>(H5T_STD_U8LE, H5T_NATIVE_UINT8, PixelType::kUint8);
  EXPECT_EQ(open_array(path())->info().block, Shape());
}

TEST_F(Hdf5, TheArrayIsNamedWhereThereAreSeveral) {
  {
    const Hdf5Made made(path());
    const hid_t group = H5Gcreate2(made.file(), "t1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    made.add<uint8_t>("t1/image", H5T_STD_U8LE, H5T_NATIVE_UINT8);
    made.add<float>("mask", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT);
    H5Lcreate_soft("/t1/image", made.file(), "link", H5P_DEFAULT, H5P_DEFAULT);
  }
  EXPECT_EQ(open_array(path(), {.dataset = "t1/image"})->type(), PixelType::kUint8);
  EXPECT_EQ(open_array(path(), {.dataset = "/mask"})->type(), PixelType::kFloat32);
  EXPECT_EQ(open_array(path(), {.dataset = "link"})->type(), PixelType::kUint8);
  expect_refusal([&] { open_array(path()); }, "holds 2 arrays; name one of them: mask, t1/image");
  expect_refusal([&] { open_array(path(), {.dataset = "masks"}); }, "mask");
}

TEST_F(Hdf5, AFileLeadsToNoOther) {
  Hdf5Made(folder_ / "other.h5").add<uint8_t>("image", H5T_STD_U8LE, H5T_NATIVE_UINT8);
  {
    const Hdf5Made made(path());
    H5Lcreate_external("other.h5", "/image", made.file(), "outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/outside", made.file(), "indirect", H5P_DEFAULT, H5P_DEFAULT);
  }
  expect_refusal([&] { open_array(path(), {.dataset = "outside"}); }, "cannot be opened");
  expect_refusal([&] { open_array(path(), {.dataset = "indirect"}); }, "cannot be opened");

  write_bytes(folder_ / "secret.bin", std::string(kCount, 's'));
  const hid_t raw = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(raw, (folder_ / "secret.bin").c_str(), 0, kCount);
  const hid_t space = H5Screate_simple(3, kSizes.data(), nullptr);
  {
    const Hdf5Made made(path());
    H5Dclose(H5Dcreate2(made.file(), "image", H5T_STD_U8LE, space, H5P_DEFAULT, raw, H5P_DEFAULT));
  }
  expect_refusal([&] { open_array(path()); }, "lies in other files");

  const hid_t parts = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(parts, space, (folder_ / "other.h5").c_str(), "/image", space);
  {
    const Hdf5Made made(path());
    H5Dclose(
        H5Dcreate2(made.file(), "image", H5T_STD_U8LE, space, H5P_DEFAULT, parts, H5P_DEFAULT));
  }
  expect_refusal([&] { open_array(path()); }, "lies in other files");
  H5Sclose(space);
  H5Pclose(raw);
  H5Pclose(parts);
}

TEST_F(Hdf5, WhatIsNotAnImageIsRefused) {
  write_bytes(path(), "not HDF5");
  expect_refusal([&] { open_array(path()); }, "it is not HDF5, or damaged");
  { const Hdf5Made made(path()); }
  expect_refusal([&] { open_array(path()); }, "holds no array of numbers");
  expect_refusal([&] { open_array(folder_ / "none.h5"); }, "No such file");
}

}  // namespace
}  // namespace tessera::hdf5_test
