#pragma once
// Writes an image file by boxes, from many ranks: the one interface of all formats. One rank
// creates the file under a temporary name, all write their own boxes, all do their part of what is
// left (compressing, for one), and the creator gives it its name. Readers see the whole file or
// none (files/temporary_file.h).
//
// Boxes are written by pwrite, not through a mapping: a disk that fills up or fails is then an
// error and not a SIGBUS, and ranks on several machines can write next to each other on a network
// file system, where mappings would overwrite each other's parts of a page.
//
// Disjoint boxes may be written at the same time, by threads or by processes. All throw
// InvalidInput where the disk fails.
//
// Example:
//   const ArrayInfo info{.shape = {512, 512}, .axes = "YX", .type = PixelType::kUint8};
//   auto writer = rank == 0 ? create_array_writer("out.tif", info) : nullptr;
//   const std::string name = broadcast_text(transport, rank == 0 ? writer->temporary_name() : "");
//   if (rank != 0) writer = join_array_writer("out.tif", name, info);
//   writer->write(my_box, my_classes.data());
//   writer->flush();
//   barrier();
//   writer->finish_part(rank, num_ranks);
//   barrier();
//   if (rank == 0) writer->commit();

#include <memory>
#include <string>
#include <vector>

#include "tessera/images/array_file.h"

namespace tessera {

class ArrayWriter {
 public:
  ArrayWriter(std::string path, ArrayInfo info) : path_(std::move(path)), info_(std::move(info)) {}
  virtual ~ArrayWriter() = default;
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;

  const std::string& path() const { return path_; }
  const ArrayInfo& info() const { return info_; }
  const Shape& shape() const { return info_.shape; }
  PixelType type() const { return info_.type; }

  /// For the others to join. Only the creator.
  virtual const std::string& temporary_name() const = 0;
  /// Writes a box of the array from dense memory of its type, the last axis fastest.
  virtual void write(const Box& box, const void* dense) = 0;
  /// Waits until what was written is on the disk.
  virtual void flush() = 0;
  /// After all have flushed, and before anybody commits: part `part` of `parts` of what is left to
  /// do. A part that nobody does is done by the commit. Nothing may be written after it.
  virtual void finish_part(int part, int parts) = 0;
  /// Gives the file its name, for good: file and folder are synchronised. Only the creator.
  virtual void commit() = 0;

 private:
  const std::string path_;
  const ArrayInfo info_;
};

/// The format is chosen by the ending. Reserves the space on the disk, but for a TIFF, of which
/// nobody knows how large it will be. Throws InvalidInput for an
/// ending that is not written, an array that the format does not hold, a folder that cannot be
/// written and a disk without room, Unsupported where the build lacks the library. A creator that
/// does not commit leaves no file.
std::unique_ptr<ArrayWriter> create_array_writer(const std::string& path, const ArrayInfo& info);
/// Joins in writing the file that another rank has created, with the same info; `temporary` is its
/// temporary_name().
std::unique_ptr<ArrayWriter> join_array_writer(const std::string& path,
                                               const std::string& temporary, const ArrayInfo& info);

/// All that are written, those that this build cannot write included.
std::vector<std::string> written_endings();

}  // namespace tessera
