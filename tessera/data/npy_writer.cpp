#include "tessera/data/npy_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <type_traits>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// So that the rename itself survives a power failure.
int sync_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  // Some network file systems cannot synchronise folders and need not.
  const int error = fsync(fd) != 0 && errno != EINVAL && errno != EROFS ? errno : 0;
  close(fd);
  return error;
}

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

std::unique_ptr<NpyWriter> NpyWriter::create(const std::string& path, NpyType type,
                                             const Shape& shape) {
  int64_t bytes = npy_element_bytes(type);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      throw_error<InvalidInput>("[npy] {}: a file of shape {} is impossible", path,
                                to_string(shape));
  const std::string name = temporary_name(path);
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    throw_error<InvalidInput>("[npy] cannot create '{}': {}; choose a folder that can be written",
                              name, std::strerror(errno));
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, fd, Role::kCreator));
  const std::string header = format_npy_header({type, shape});
  writer->header_ = {type, shape, static_cast<int64_t>(header.size())};
  writer->reserve();
  writer->write_bytes(header.data(), static_cast<int64_t>(header.size()), 0);
  return writer;
}

std::unique_ptr<NpyWriter> NpyWriter::attach(const std::string& path) {
  const std::string name = temporary_name(path);
  const int fd = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    throw_error<InvalidInput>(
        "[npy] cannot open '{}', which the first rank created: {}; write to "
        "a folder that all machines share",
        name, std::strerror(errno));
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, fd, Role::kGuest));
  struct stat status;
  if (fstat(fd, &status) != 0) writer->fail("read", errno);
  std::vector<char> begin(static_cast<size_t>(std::min<int64_t>(status.st_size, 65536)));
  const ssize_t count = pread(fd, begin.data(), begin.size(), 0);
  if (count < 0) writer->fail("read", errno);
  writer->header_ = parse_npy_header(begin.data(), count, status.st_size, name);
  return writer;
}

NpyWriter::~NpyWriter() {
  if (fd_ >= 0) close(fd_);
  if (role_ == Role::kCreator && !committed_) unlink(temporary_name(path_).c_str());
}

void NpyWriter::fail(const char* doing, int error) const {
  throw_error<InvalidInput>("[npy] cannot {} '{}' ({} bytes): {}{}", doing, path_,
                            header_.data_offset + header_.data_bytes(), std::strerror(error),
                            error == ENOSPC || error == EDQUOT || error == EFBIG
                                ? "; free some space or write elsewhere"
                                : "");
}

/// Asks first, since reserving on a disk that is too small would fill it before it fails.
void NpyWriter::reserve() {
  const int64_t bytes = header_.data_offset + header_.data_bytes();
  struct statvfs disk;
  if (fstatvfs(fd_, &disk) == 0 && disk.f_blocks > 0 &&
      static_cast<uint64_t>(bytes) / disk.f_frsize > disk.f_bavail)
    throw_error<InvalidInput>(
        "[npy] '{}' needs {} bytes, the disk has {} free; free some space or write elsewhere",
        path_, bytes, disk.f_bavail * disk.f_frsize);
  const int error = posix_fallocate(fd_, 0, bytes);
  if (error == 0) return;
  // A file system that cannot reserve reports a full disk when it is written to instead.
  if (error != EOPNOTSUPP && error != EINVAL) fail("reserve space for", error);
  if (ftruncate(fd_, bytes) != 0) fail("reserve space for", errno);
}

void NpyWriter::write(const Box& box, const at::Tensor& source) {
  check_request("npy writer", shape(), box, source);
  if (box.empty()) return;
  switch (header_.type) {
    case NpyType::kFloat32:
      return write_rows<float>(box, source);
    case NpyType::kFloat64:
      return write_rows<double>(box, source);
    case NpyType::kUint8:
      return write_rows<uint8_t>(box, source);
    case NpyType::kUint16:
      return write_rows<uint16_t>(box, source);
    case NpyType::kInt16:
      return write_rows<int16_t>(box, source);
    case NpyType::kInt32:
      return write_rows<int32_t>(box, source);
    case NpyType::kInt64:
      return write_rows<int64_t>(box, source);
  }
}

template <class T>
void NpyWriter::write_rows(const Box& box, const at::Tensor& source) {
  using Source = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  if (std::is_integral_v<T> && source.is_floating_point())
    throw_error<InvalidInput>("[npy] {}: real numbers into a file of {}; use <f4", path_,
                              npy_type_name(header_.type));
  const at::Tensor host = source.to(at::kCPU, kScalar<Source>);
  const Source* data = host.data_ptr<Source>();
  const int64_t stride = row_stride(box, host.strides());
  std::vector<T> row(static_cast<size_t>(row_length(box)));
  for_each_row(box, host.strides(), [&](const Position& at, int64_t offset) {
    int64_t index = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis) index = index * shape()[axis] + at[axis];
    for (int64_t i = 0; i < row_length(box); ++i)
      row[i] = convert<T>(data[offset + i * stride], path_);
    const int64_t bytes = static_cast<int64_t>(sizeof(T));
    write_bytes(reinterpret_cast<const char*>(row.data()), row_length(box) * bytes,
                header_.data_offset + index * bytes);
  });
}

void NpyWriter::write_bytes(const char* data, int64_t count, int64_t offset) {
  while (count > 0) {
    const ssize_t written = pwrite(fd_, data, static_cast<size_t>(count), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    data += written;
    count -= written;
    offset += written;
  }
}

void NpyWriter::flush() {
  if (fsync(fd_) != 0) fail("write", errno);
}

void NpyWriter::commit() {
  TESSERA_CHECK(role_ == Role::kCreator && !committed_, "commit() of '{}'", path_);
  flush();
  if (rename(temporary_name(path_).c_str(), path_.c_str()) != 0) fail("rename", errno);
  committed_ = true;
  if (const int error = sync_folder(folder_of(path_))) fail("synchronise the folder of", error);
}

}  // namespace tessera
