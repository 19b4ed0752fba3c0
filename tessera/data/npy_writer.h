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
//   const Shape shape{512, 512};
//   auto writer = rank == 0 ? NpyWriter::create("out.npy", PixelType::kUint8, shape) : nullptr;
//   const std::string name = broadcast_text(transport, rank == 0 ? writer->temporary_name() : "");
//   if (rank != 0) writer = NpyWriter::join("out.npy", name, PixelType::kUint8, shape);
//   writer->write(my_box, my_classes);
//   writer->flush();
//   barrier();
//   if (rank == 0) writer->commit();

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

#include "tessera/files/temporary_file.h"
#include "tessera/images/npy_header.h"

namespace tessera {

class NpyWriter {
 public:
  /// Reserves the space on disk. Throws InvalidInput where the folder cannot be written or the disk
  /// has not enough room. A creator that does not commit leaves no file.
  static std::unique_ptr<NpyWriter> create(const std::string& path, PixelType type,
                                           const Shape& shape);
  /// Joins in writing the file that another rank has created, with the same type and shape;
  /// `temporary` is its temporary_name().
  static std::unique_ptr<NpyWriter> join(const std::string& path, const std::string& temporary,
                                         PixelType type, const Shape& shape);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  const Shape& shape() const { return layout_.shape; }
  /// Where the file lies until commit(), for the others to join. Only the creator.
  const std::string& temporary_name() const;
  /// Writes `source`, a tensor of the box's shape, converted to the file's type. Throws
  /// InvalidInput for an integer that the type cannot hold, and where the disk fails.
  void write(const Box& box, const at::Tensor& source);
  /// Waits until what was written is on disk. Every rank calls it before the creator commits.
  void flush();
  /// Gives the file its name, for good: file and folder are synchronised. Only the creator.
  void commit();

 private:
  NpyWriter(std::string path, PixelType type, const Shape& shape);
  template <class T>
  void write_rows(const Box& box, const at::Tensor& source);
  OutputFile& file();

  const std::string path_;
  const FlatLayout layout_;
  std::optional<TemporaryFile> created_;  // the creator's, until it commits
  std::optional<OutputFile> joined_;      // a guest's
};

}  // namespace tessera
