#pragma once
// Which point-to-point messages an instruction posts, in the order in which the executor posts
// them: the n-th send of a rank to a peer meets the n-th receive there. The checker proves that
// order, the simulator counts and times the messages.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

struct Post {
  int peer = 0;
  int64_t bytes = 0;
};

struct Posts {
  std::vector<Post> sends;
  std::vector<Post> receives;
  bool empty() const { return sends.empty() && receives.empty(); }
};

Posts posts_of(const StartTransfer& transfer, const Program& program, at::ScalarType real);
Posts posts_of(const StartGather& gather, const Program& program, at::ScalarType real);
/// The first round.
Posts posts_of(const StartReduce& reduce, const Program& program, at::ScalarType real);
/// All other rounds.
Posts posts_of(const FinishReduce& reduce, const Program& program, at::ScalarType real);
/// Other instructions post nothing.
template <class Other>
Posts posts_of(const Other&, const Program&, at::ScalarType) {
  return {};
}

}  // namespace tessera
