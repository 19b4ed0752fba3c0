#pragma once
// Where each buffer of a step lies in one block of memory. Lifetimes are known from the program, so
// addresses are, too: a step allocates nothing, and takes hardly more than the most that lives at
// once.
//
// Example:
//   const ArenaLayout layout = lay_out(program, at::kFloat);
//   layout.offsets[buffer];  // of layout.bytes

#include <cstdint>
#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

struct ArenaLayout {
  static constexpr int64_t kAlignment = 64;  // of every offset

  std::vector<int64_t> offsets;  // by BufferId; -1: permanent, or never used
  int64_t bytes = 0;
};

/// Of the buffers that come and go, with numbers of type `real`. Buffers that live at the same time
/// do not overlap.
ArenaLayout lay_out(const Program& program, at::ScalarType real);

}  // namespace tessera
