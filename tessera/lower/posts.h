#pragma once
// Which point-to-point messages an instruction posts, in the order in which the executor posts
// them: the n-th send of a rank to a peer meets the n-th receive there. The checker proves that
// order, the ranks of large worlds compare hashes of it, the simulator counts and times the
// messages.

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
};

/// What an instruction does on its channel.
struct Communication {
  int channel = -1;  // -1: it does not communicate
  /// A Finish first waits until all that was posted on its channel has moved, and again after each
  /// of its own rounds. A Start posts one round and does not wait.
  bool waits = false;
  int first_round = 0;  // of the channel: those before it are the Start's
  std::vector<Posts> rounds;
};

/// `rank` is the program's own, or another member's whose program has the same reductions.
Communication communication_of(const Instruction& instruction, const Program& program, int rank,
                               at::ScalarType real);

}  // namespace tessera
