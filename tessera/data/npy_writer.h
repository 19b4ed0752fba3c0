#pragma once
// Writes a .npy file by boxes, from many ranks: one creates it under a temporary name, all write
// their own boxes, and when all are done the creator gives it its name. Readers see the whole file
// or none.
//
// Boxes are written by pwrite, not through a mapping: a disk that fills up or fails is then an
// error and not a SIGBUS, and ranks on several machines can write next to each other on a network
// file system, where mappings would overwrite each other's parts of a page.
//
// Disjoint boxes may be written at the same time, by threads or by processes.
//
// Example:
//   auto writer = rank == 0 ? NpyWriter::create("out.npy", NpyType::kUint8, {512, 512}) : nullptr;
//   barrier();
//   if (rank != 0) writer = NpyWriter::attach("out.npy");
//   writer->write(my_box, my_classes);
//   writer->flush();
//   barrier();
//   if (rank == 0) writer->commit();

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "tessera/data/npy_header.h"

namespace tessera {

class NpyWriter {
 public:
  /// Reserves the space on disk. Throws InvalidInput where the folder cannot be written or the disk
  /// has not enough room. What an interrupted run left under the temporary name is replaced.
  static std::unique_ptr<NpyWriter> create(const std::string& path, NpyType type,
                                           const Shape& shape);
  /// Joins in writing the file that another rank has created.
  static std::unique_ptr<NpyWriter> attach(const std::string& path);
  /// A creator that did not commit removes its temporary file.
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  const Shape& shape() const { return header_.shape; }
  /// Writes `source`, a tensor of the box's shape, converted to the file's type. Throws
  /// InvalidInput for an integer that the type cannot hold, and where the disk fails.
  void write(const Box& box, const at::Tensor& source);
  /// Waits until what was written is on disk. Every rank calls it before the creator commits.
  void flush();
  /// Gives the file its name, for good: file and folder are synchronised. Only the creator.
  void commit();

  /// The name while it is being written.
  static std::string temporary_name(const std::string& path) { return path + ".partial"; }

 private:
  enum class Role { kCreator, kGuest };
  NpyWriter(std::string path, int fd, Role role) : path_(std::move(path)), fd_(fd), role_(role) {}
  void reserve();
  template <class T>
  void write_rows(const Box& box, const at::Tensor& source);
  void write_bytes(const char* data, int64_t count, int64_t offset);
  [[noreturn]] void fail(const char* doing, int error) const;

  const std::string path_;
  int fd_ = -1;
  const Role role_;
  bool committed_ = false;
  NpyHeader header_;
};

}  // namespace tessera
