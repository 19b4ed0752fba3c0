#pragma once
// The header of NumPy's .npy files: magic, version, a Python dictionary with type, order and shape.
// Read with suspicion, since the file may be anything: whatever is not exactly understood is
// InvalidInput that says what is wrong and what would be right.
//
// Versions 1.0 and 2.0, C order, little endian.
//
// Example:
//   NpyHeader header = parse_npy_header(bytes, size, file_bytes, "images.npy");
//   std::string begin_of_file = format_npy_header({NpyType::kFloat32, {64, 1, 512, 512}});

#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/geometry/box.h"

namespace tessera {

enum class NpyType { kFloat32, kFloat64, kUint8, kUint16, kInt16, kInt32, kInt64 };

int64_t npy_element_bytes(NpyType type);
/// NumPy's name, such as "<f4".
const char* npy_type_name(NpyType type);

struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  Shape shape;              // no axes: one number
  int64_t data_offset = 0;  // where the elements begin in the file; not read by format_npy_header

  /// Elements and bytes; a parsed header's are known to fit 64 bits.
  int64_t num_elements() const;
  int64_t data_bytes() const { return num_elements() * npy_element_bytes(type); }
};

/// The most bytes at the beginning of a file that parse_npy_header can need.
constexpr int64_t kMaxNpyHeaderBytes = 1 << 20;

/// `data` holds the first `size` bytes of the file: all of it, or kMaxNpyHeaderBytes. Throws
/// InvalidInput for a malformed header, one that Tessera does not read, and a file whose size is
/// not what the header asks for. `name` is the file's, for messages.
NpyHeader parse_npy_header(const char* data, int64_t size, int64_t file_bytes,
                           const std::string& name);

/// The beginning of a file, padded so that the elements begin at a multiple of 64 bytes.
std::string format_npy_header(const NpyHeader& header);

}  // namespace tessera
