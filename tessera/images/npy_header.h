#pragma once
// The header of NumPy's .npy files: magic, version, a Python dictionary with type, order and shape.
// Read with suspicion, since the file may be anything: whatever is not exactly understood is
// InvalidInput that says what is wrong and what would be right.
//
// Versions 1.0 and 2.0, of either byte order and either order of axes.
//
// Example:
//   FlatLayout layout = parse_npy_header(bytes, size, file_bytes, "images.npy");
//   std::string begin_of_file = format_npy_header(PixelType::kFloat32, {64, 1, 512, 512});

#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/images/flat_array.h"

namespace tessera {

/// The most bytes at the beginning of a file that parse_npy_header can need.
constexpr int64_t kMaxNpyHeaderBytes = 1 << 20;

/// `data` holds the first `size` bytes of the file: all of it, or kMaxNpyHeaderBytes. Throws
/// InvalidInput for a malformed header, one that Tessera does not read, and a file whose size is
/// not what the header asks for. `name` is the file's, for messages.
FlatLayout parse_npy_header(const char* data, int64_t size, int64_t file_bytes,
                            const std::string& name);

/// The beginning of a file, padded so that the elements begin at a multiple of 64 bytes.
std::string format_npy_header(PixelType type, const Shape& shape);

}  // namespace tessera
