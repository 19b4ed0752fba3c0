#pragma once
// The text of a checkpoint's state.json: where the run was, and the sizes and checksums by which
// its tensors are checked. The text carries a checksum of itself, for a changed digit in it would
// lead a run astray without a sign.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tessera/checkpoint/training_state.h"

namespace tessera {

struct StateFile {
  TrainingState state;  // without its tensors
  bool is_best = false;
  uint64_t tensor_file_bytes = 0;
  std::map<std::string, uint64_t> checksums;  // of each tensor, by name
};

/// Throws InvalidInput where the metadata is not UTF-8.
std::string format_state(const StateFile& file);

/// Throws InvalidInput with the fault: not JSON, not a checkpoint, another version, altered.
StateFile parse_state(std::string_view text);

}  // namespace tessera
