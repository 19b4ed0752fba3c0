// Reading .npy files: every type, version, offset and box, against values made by hand.

#include "tessera/data/array_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/images/npy_header.h"
#include "tests/unit/data/npy_bytes.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::npy_test {
namespace {

template <class T>
void expect_type(const std::string& descr) {
  SCOPED_TRACE(descr);
  const ScratchFolder folder;
  const std::vector<T> values{T(0), T(1), T(100), T(7), T(-3), T(127)};
  write_bytes(folder.file("a.npy"), npy_of<T>(descr, "(2, 3)", values));
  const ArrayReader array(folder.file("a.npy"));
  EXPECT_EQ(array.shape(), (Shape{2, 3}));
  at::Tensor real = at::empty({2, 3}, at::kDouble);
  array.read(Box::whole({2, 3}), real);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(real.data_ptr<double>()[i], static_cast<double>(values[i]));
  at::Tensor labels = at::empty({2, 3}, at::kLong);
  if (!std::is_integral_v<T>) {
    EXPECT_THROW(array.read(Box::whole({2, 3}), labels), InvalidInput);
  } else {
    array.read(Box::whole({2, 3}), labels);
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(labels.data_ptr<int64_t>()[i], static_cast<int64_t>(values[i]));
  }
}

TEST(Npy, ReadsEveryType) {
  expect_type<float>("<f4");
  expect_type<double>("<f8");
  expect_type<uint8_t>("|u1");
  expect_type<uint16_t>("<u2");
  expect_type<int16_t>("<i2");
  expect_type<int32_t>("<i4");
  expect_type<int64_t>("<i8");
  expect_type<int8_t>("|i1");
  expect_type<uint32_t>("<u4");
  expect_type<uint64_t>("=u8");
  expect_type<c10::Half>("<f2");
}

TEST(Npy, ReadsTruthValues) {
  const ScratchFolder folder;
  write_bytes(folder.file("a.npy"), npy_of<uint8_t>("|b1", "(3,)", {1, 0, 1}));
  at::Tensor labels = at::empty({3}, at::kLong);
  ArrayReader(folder.file("a.npy")).read(Box::whole({3}), labels);
  EXPECT_TRUE(labels.equal(at::tensor({1, 0, 1}, at::kLong)));
}

TEST(Npy, ReadsTheOtherByteOrder) {
  const ScratchFolder folder;
  write_bytes(folder.file("a.npy"),
              npy_of<uint8_t>(">i4", "(2,)", {0, 0, 1, 2, 255, 255, 255, 254}));
  at::Tensor labels = at::empty({2}, at::kLong);
  ArrayReader(folder.file("a.npy")).read(Box::whole({2}), labels);
  EXPECT_TRUE(labels.equal(at::tensor({258, -2}, at::kLong)));
}

TEST(Npy, ReadsBoxesInFortranOrder) {
  const ScratchFolder folder;
  const at::Tensor whole = at::randint(0, 30'000, {4, 3, 7, 5}, at::kShort);
  const at::Tensor stored = whole.permute({3, 2, 1, 0}).contiguous();
  const std::string data(static_cast<const char*>(stored.data_ptr()), stored.nbytes());
  write_bytes(folder.file("a.npy"),
              npy_bytes("{'descr': '<i2', 'fortran_order': True, 'shape': (4, 3, 7, 5)}", data));
  const ArrayReader array(folder.file("a.npy"));
  for (const Box& box :
       {Box::whole({4, 3, 7, 5}), Box{{1, 2}, {0, 3}, {2, 7}, {4, 5}},
        Box{{0, 4}, {1, 2}, {3, 3}, {0, 5}}, Box{{2, 4}, {0, 2}, {0, 7}, {1, 3}}}) {
    at::Tensor part = at::empty(box.shape(), at::kLong), expected = whole;
    for (int axis = 0; axis < 4; ++axis)
      expected = expected.narrow(axis, box[axis].begin, box[axis].size());
    array.read(box, part);
    EXPECT_TRUE(part.equal(expected.to(at::kLong))) << to_string(box);
  }
}

TEST(Npy, LargeIntegersStayExact) {
  const ScratchFolder folder;
  const int64_t large = (int64_t{1} << 53) + 1;
  write_bytes(folder.file("a.npy"), npy_of<int64_t>("<i8", "(2,)", {large, -large}));
  at::Tensor labels = at::empty({2}, at::kLong);
  ArrayReader(folder.file("a.npy")).read(Box::whole({2}), labels);
  EXPECT_EQ(labels[0].item<int64_t>(), large);
  EXPECT_EQ(labels[1].item<int64_t>(), -large);
}

/// Rows longer than what is read at once, and rows with more between them than is read for nothing.
TEST(Npy, LongRowsAndDistantRowsAreRead) {
  const ScratchFolder folder;
  std::vector<int32_t> values(3 * 4 * 50'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  write_bytes(folder.file("a.npy"), npy_of<int32_t>("<i4", "(3, 4, 50000)", values));
  const at::Tensor all = at::tensor(values, at::kLong).reshape({3, 4, 50'000});
  const ArrayReader array(folder.file("a.npy"));
  for (const Range& columns : {Range{0, 50'000}, Range{1, 49'999}, Range{20'000, 20'003},
                               Range{600, 49'500}, Range{49'999, 50'000}}) {
    at::Tensor part = at::empty({2, 3, columns.size()}, at::kLong);
    array.read(Box{{1, 3}, {0, 3}, columns}, part);
    EXPECT_TRUE(
        part.equal(all.narrow(0, 1, 2).narrow(1, 0, 3).narrow(2, columns.begin, columns.size())));
  }
}

TEST(Npy, BoxesEqualTheWhole) {
  const ScratchFolder folder;
  const Shape shape{5, 2, 13, 7};
  std::vector<float> values(5 * 2 * 13 * 7);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  write_bytes(folder.file("a.npy"), npy_of("<f4", "(5, 2, 13, 7)", values));
  const ArrayReader array(folder.file("a.npy"));
  at::Tensor whole = at::empty(shape);
  array.read(Box::whole(shape), whole);
  EXPECT_TRUE(whole.equal(at::arange(910, at::kFloat).view(shape)));
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Box box = intersect(random_box(random, shape, 0), Box::whole(shape));
    at::Tensor expected = whole;
    for (int axis = 0; axis < 4; ++axis)
      expected = expected.narrow(axis, std::min(box[axis].begin, shape[axis]), box[axis].size());
    // Strided, as an interior is.
    Shape larger = box.shape();
    larger.back() += 4;
    at::Tensor target = at::zeros(larger, at::kDouble).narrow(3, 2, box[3].size());
    array.read(box, target);
    EXPECT_TRUE(target.equal(expected.to(at::kDouble))) << "seed " << seed << " " << to_string(box);
  }
}

TEST(Npy, ATargetMayLackAxesOfSizeOne) {
  const ScratchFolder folder;
  write_bytes(folder.file("a.npy"), npy_of<uint8_t>("|u1", "(2, 1, 3)", {1, 2, 3, 4, 5, 6}));
  const ArrayReader array(folder.file("a.npy"));
  at::Tensor row = at::empty({3}, at::kLong), number = at::empty({}, at::kLong);
  array.read({{1, 2}, {0, 1}, {0, 3}}, row);
  EXPECT_TRUE(row.equal(at::tensor({4, 5, 6}, at::kLong)));
  array.read({{1, 2}, {0, 1}, {2, 3}}, number);
  EXPECT_EQ(number.item<int64_t>(), 6);
  EXPECT_THROW(array.read({{0, 2}, {0, 1}, {0, 3}}, at::empty({3, 2})), InternalError);
  EXPECT_THROW(array.read({{0, 3}, {0, 1}, {0, 3}}, at::empty({3, 1, 3})), InternalError);
}

// Dictionaries as other writers make them; odd lengths put the numbers at odd addresses.
TEST(Npy, AcceptsEveryLegalSpelling) {
  const ScratchFolder folder;
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);  // 1.0f, 2.0f
  const std::vector<std::string> legal{
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
      "{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}",
      "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,)}   \n",
      " {'descr':'<f4','fortran_order':False,'shape':(1,2)}",
      "{'descr': '<f4',\n 'fortran_order': False,\t'shape': ( 2 , 1 ) , }\n\n"};
  for (const std::string& dictionary : legal)
    for (const int version : {1, 2}) {
      write_bytes(folder.file("a.npy"), npy_bytes(dictionary, data, version));
      const ArrayReader array(folder.file("a.npy"));
      at::Tensor target = at::empty(array.shape(), at::kDouble);
      array.read(Box::whole(array.shape()), target);
      EXPECT_EQ(target.sum().item<double>(), 3.0) << dictionary;
      EXPECT_EQ(target.view({2})[1].item<double>(), 2.0) << dictionary;
    }
}

TEST(Npy, ANumberWithoutAxesAndAnEmptyArray) {
  const ScratchFolder folder;
  write_bytes(folder.file("a.npy"), npy_of<double>("<f8", "()", {2.5}));
  at::Tensor number = at::empty({}, at::kDouble);
  ArrayReader(folder.file("a.npy")).read(Box(), number);
  EXPECT_EQ(number.item<double>(), 2.5);
  write_bytes(folder.file("b.npy"), npy_of<double>("<f8", "(0, 3)", {}));
  const ArrayReader empty(folder.file("b.npy"));
  EXPECT_EQ(empty.shape(), (Shape{0, 3}));
  empty.read(Box::whole({0, 3}), at::empty({0, 3}));
}

TEST(Npy, OwnHeadersAreAlignedAndReadBack) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{64, 3, 512, 512}, Shape(6, 1234567)}) {
    const std::string text = format_npy_header(PixelType::kInt16, shape);
    EXPECT_EQ(text.size() % 64, 0u);
    EXPECT_EQ(text.back(), '\n');
    if (shape.size() == 6) continue;  // larger than any file
    const int64_t size = static_cast<int64_t>(text.size());
    const int64_t bytes = checked_array_bytes(shape, PixelType::kInt16, "npy", "memory");
    const FlatLayout read = parse_npy_header(text.data(), size, size + bytes, "memory");
    EXPECT_EQ(read.shape, shape);
    EXPECT_EQ(read.type, PixelType::kInt16);
    EXPECT_EQ(read.offset, size);
  }
}

}  // namespace
}  // namespace tessera::npy_test
