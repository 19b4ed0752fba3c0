#pragma once
// The header of a safetensors file, as text: which tensors the file holds, of which type and shape,
// and where their bytes lie. Kept apart from files so that every fault can be tested as a string.
//
//   { "conv.weight": {"dtype": "F32", "shape": [8, 3, 3, 3], "data_offsets": [0, 864]},
//     "__metadata__": {"format": "pt"} }

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

/// Free text that travels with the tensors.
using Metadata = std::map<std::string, std::string>;

struct TensorEntry {
  std::string name;
  at::ScalarType type = at::ScalarType::Float;
  Shape shape;         // empty for a single number
  uint64_t begin = 0;  // in bytes, from the end of the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  Metadata metadata;
};

/// The text, padded with spaces to a multiple of 8 bytes. Throws InvalidInput for a type that the
/// format does not have, a name that occurs twice, and text that is not UTF-8.
std::string format_header(const SafetensorsHeader& header);

/// Entries come in the order of their names. Throws InvalidInput with the fault unless every byte
/// of the `data_bytes` after the header belongs to exactly one tensor, and each tensor has the
/// bytes that its type and shape say.
SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes);

}  // namespace tessera
