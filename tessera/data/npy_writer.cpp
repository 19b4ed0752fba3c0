#include "tessera/data/npy_writer.h"

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

template <class T>
constexpr at::ScalarType kScalar = c10::CppTypeToScalarType<T>::value;

/// What the file stores for a number of the source.
template <class T, class Source>
T convert(Source number, const std::string& path) {
  if constexpr (std::is_integral_v<T>) {
    if (number < static_cast<Source>(std::numeric_limits<T>::min()) ||
        number > static_cast<Source>(std::numeric_limits<T>::max()))
      throw_error<InvalidInput>("[npy] {}: {} does not fit the file's type, {} to {}; use <i8",
                                path, number, std::numeric_limits<T>::min(),
                                std::numeric_limits<T>::max());
  }
  return static_cast<T>(number);
}

}  // namespace

std::unique_ptr<NpyWriter> NpyWriter::create(const std::string& path, PixelType type,
                                             const Shape& shape) {
  const int64_t bytes = checked_array_bytes(shape, type, "npy", path);
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, type, shape));
  const std::string header = format_npy_header(type, shape);
  writer->created_.emplace(path);
  writer->file().reserve(std::ssize(header) + bytes);
  writer->file().write_at(header.data(), header.size(), 0);
  return writer;
}

std::unique_ptr<NpyWriter> NpyWriter::join(const std::string& path, const std::string& temporary,
                                           PixelType type, const Shape& shape) {
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, type, shape));
  try {
    writer->joined_.emplace(OutputFile::join(temporary));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "{}; the first rank has created this file, so write to a folder that all machines share",
        error.what());
  }
  return writer;
}

NpyWriter::NpyWriter(std::string path, PixelType type, const Shape& shape)
    : path_(std::move(path)),
      layout_{.offset = std::ssize(format_npy_header(type, shape)), .shape = shape, .type = type} {}

OutputFile& NpyWriter::file() {
  TESSERA_CHECK(created_ || joined_, "'{}' is committed already", path_);
  return created_ ? created_->file() : *joined_;
}

const std::string& NpyWriter::temporary_name() const {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  return created_->name();
}

void NpyWriter::write(const Box& box, const at::Tensor& source) {
  check_request("npy writer", shape(), box, source);
  if (box.empty()) return;
  switch (layout_.type) {
    case PixelType::kFloat32:
      return write_rows<float>(box, source);
    case PixelType::kFloat64:
      return write_rows<double>(box, source);
    case PixelType::kUint8:
      return write_rows<uint8_t>(box, source);
    case PixelType::kUint16:
      return write_rows<uint16_t>(box, source);
    case PixelType::kInt8:
      return write_rows<int8_t>(box, source);
    case PixelType::kUint32:
      return write_rows<uint32_t>(box, source);
    case PixelType::kUint64:
    case PixelType::kFloat16:
      throw_error<InvalidInput>("[npy] {}: {} is not written; use int64 or float32", path_,
                                name_of(layout_.type));
    case PixelType::kInt16:
      return write_rows<int16_t>(box, source);
    case PixelType::kInt32:
      return write_rows<int32_t>(box, source);
    case PixelType::kInt64:
      return write_rows<int64_t>(box, source);
  }
}

template <class T>
void NpyWriter::write_rows(const Box& box, const at::Tensor& source) {
  using Source = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  if (std::is_integral_v<T> && source.is_floating_point())
    throw_error<InvalidInput>("[npy] {}: real numbers into a file of {}; use <f4", path_,
                              name_of(layout_.type));
  const at::Tensor host = source.to(at::kCPU, kScalar<Source>);
  const Source* data = host.data_ptr<Source>();
  const int64_t stride = row_stride(box, host.strides());
  std::vector<T> row(static_cast<size_t>(row_length(box)));
  for_each_row(box, host.strides(), [&](const Position& at, int64_t offset) {
    int64_t index = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis) index = index * shape()[axis] + at[axis];
    for (int64_t i = 0; i < row_length(box); ++i)
      row[i] = convert<T>(data[offset + i * stride], path_);
    file().write_at(row.data(), row.size() * sizeof(T),
                    layout_.offset + index * static_cast<int64_t>(sizeof(T)));
  });
}

void NpyWriter::flush() { file().sync(); }

void NpyWriter::commit() {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  created_->commit();
  created_.reset();
}

}  // namespace tessera
