#pragma once
// Writes a .npy file by boxes, from many ranks: one creates it under a temporary name, all write
// their own boxes, and when all are done the creator gives it its name (files/temporary_file.h).
// Readers see the whole file or none.
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
#include <optional>
#include <string>

#include "tessera/data/npy_header.h"
#include "tessera/files/temporary_file.h"

namespace tessera {

class NpyWriter {
 public:
  /// Reserves the space on disk. Throws InvalidInput where the folder cannot be written or the disk
  /// has not enough room. A creator that does not commit leaves no file.
  static std::unique_ptr<NpyWriter> create(const std::string& path, NpyType type,
                                           const Shape& shape);
  /// Joins in writing the file that another rank has created.
  static std::unique_ptr<NpyWriter> attach(const std::string& path);
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

 private:
  NpyWriter(std::string path, NpyHeader header);
  template <class T>
  void write_rows(const Box& box, const at::Tensor& source);
  OutputFile& file();

  const std::string path_;
  const NpyHeader header_;
  std::optional<TemporaryFile> created_;  // the creator's, until it commits
  std::optional<OutputFile> joined_;      // a guest's
};

}  // namespace tessera
