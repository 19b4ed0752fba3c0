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
  /// What is waited for until all that was posted on the channel has moved: an Advance before its
  /// own round, a Finish before and after each of its own. A Start posts one round and waits for
  /// none.
  enum class Waits { kNot, kBefore, kBeforeAndAfter };
  Waits waits = Waits::kNot;
  int first_round = 0;  // of the channel: those before it have been posted
  std::vector<Posts> rounds;

  /// Whether it waits when it has posted so many of its rounds.
  bool waits_after(size_t posted) const {
    return waits == Waits::kBeforeAndAfter || (waits == Waits::kBefore && posted < rounds.size());
  }
};

/// `rank` is the program's own, or another member's whose program has the same reductions.
Communication communication_of(const Instruction& instruction, const Program& program, int rank,
                               at::ScalarType real);

}  // namespace tessera
