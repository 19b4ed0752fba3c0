#pragma once
// Writes a NIfTI file by boxes, from many ranks: one creates it under a temporary name, all write
// their own boxes, and when all are done the creator gives it its name. Readers see the whole file
// or none.
//
// Boxes go to a flat file. Where the name ends in .gz, that file lies beside the target until
// commit() packs it, piece by piece.
//
// Disjoint boxes may be written at the same time, by threads or by processes.
//
// Example:
//   auto writer = NiftiWriter::create("mask.nii.gz", {.shape = {64, 64, 64}, .axes = "ZYX"});
//   writer->write(my_box, my_classes.data());
//   writer->flush();
//   barrier();
//   writer->commit();

#include <memory>
#include <optional>
#include <string>

#include "tessera/files/temporary_file.h"
#include "tessera/images/array_file.h"

namespace tessera {

class NiftiWriter {
 public:
  /// Reserves the space on disk. Throws InvalidInput where the folder cannot be written, the disk
  /// has not enough room, or NIfTI has no such axes or type (format_nifti_header). A creator that
  /// does not commit leaves no file.
  static std::unique_ptr<NiftiWriter> create(const std::string& path, const ArrayInfo& info);
  /// Joins in writing the file that another rank has created with the same info; `temporary` is its
  /// temporary_name().
  static std::unique_ptr<NiftiWriter> join(const std::string& path, const std::string& temporary,
                                           const ArrayInfo& info);
  NiftiWriter(const NiftiWriter&) = delete;
  NiftiWriter& operator=(const NiftiWriter&) = delete;

  const ArrayInfo& info() const { return info_; }
  /// Where the boxes go until commit(), for the others to join. Only the creator.
  const std::string& temporary_name() const;
  /// `from` is dense, of the file's type, the last axis fastest.
  void write(const Box& box, const void* from);
  /// Waits until what was written is on disk. Every rank calls it before the creator commits.
  void flush();
  /// Gives the file its name, for good. Only the creator.
  void commit();

 private:
  NiftiWriter(std::string path, const ArrayInfo& info);
  OutputFile& file();

  const std::string path_;
  const ArrayInfo info_;
  const std::string header_;
  std::optional<TemporaryFile> target_;   // of a packed file: what it becomes
  std::optional<TemporaryFile> created_;  // the creator's, until it commits
  std::optional<OutputFile> joined_;      // a guest's
};

}  // namespace tessera
