#pragma once
// The header of NIfTI-1 and NIfTI-2 files: what the numbers are, where they lie, and where the
// image lies in the world. Read with suspicion, as npy_header.h: the file may be anything.
//
// NIfTI counts its axes from the fastest on (x y z t u), we from the slowest:
//
//   dim = 4, 181, 217, 181, 2   ──►   shape 2x181x217x181, axes "PZYX"
//
// Example:
//   const NiftiHeader header = parse_nifti_header(bytes, "brain.nii");
//   std::string begin_of_file =
//       format_nifti_header({.shape = {181, 217, 181}, .axes = "ZYX"}, "x");

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/images/array_file.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/scaled_numbers.h"

namespace tessera {

struct NiftiHeader {
  FlatLayout layout = {};  // the numbers as they are stored
  std::string axes = {};
  ImageFrame frame = {};
  LinearScale scale = {};  // what a stored number means
  int64_t data_bytes = 0;
  /// Where the numbers end in the file.
  int64_t end() const { return layout.offset + data_bytes; }
};

/// The most bytes at the beginning of a file that parse_nifti_header can need.
constexpr size_t kMaxNiftiHeaderBytes = 540;

/// `data` holds the beginning of the file: all of it, or kMaxNiftiHeaderBytes. Throws InvalidInput
/// for what is not understood; `name` is the file's, for messages.
NiftiHeader parse_nifti_header(std::string_view data, const std::string& name);

/// The beginning of a file, up to its first number: NIfTI-1, or NIfTI-2 where an axis is too long
/// for it. Axes are some of C P Z Y X in that order, or those of space with C last for three
/// channels of uint8 (colours). Throws InvalidInput for what NIfTI cannot say.
std::string format_nifti_header(const ArrayInfo& info, const std::string& name);

}  // namespace tessera
