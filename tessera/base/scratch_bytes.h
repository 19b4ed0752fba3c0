#pragma once
// How much memory a kernel asks for besides its operands. Some kernels do the same work in more
// rounds where they get less.

#include <algorithm>
#include <cstdint>

namespace tessera {

struct ScratchBytes {
  int64_t least = 0;
  int64_t most = 0;  // more is of no use

  ScratchBytes() = default;
  // Implicit, since most kernels need a number of bytes and that is that.
  ScratchBytes(int64_t needed) : least(needed), most(needed) {}
  ScratchBytes(int64_t at_least, int64_t at_most) : least(at_least), most(at_most) {}

  /// What it gets where `limit` is the most that any kernel should have.
  int64_t within(int64_t limit) const { return std::max(least, std::min(limit, most)); }
};

}  // namespace tessera
