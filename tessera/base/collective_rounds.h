#pragma once
// Collectives as lists of rounds: what a member sends to and receives from each of the others,
// round by round. Here, below all who ask: the transport's collectives post these messages, the
// checker proves their order, and the simulator counts them.
//
// All-reduce and all-gather follow the circulant pattern of J. L. Träff, "Optimal, non-pipelined
// reduce-scatter and allreduce algorithms" (2024), which needs ceil(log2 g) rounds for any number g
// of members, not for powers of two only. Every member owns a block and counts the blocks from its
// own on; here are 5 members, as member r sees the way of its terms:
//
//   round 1   r  r+1  r+2 |r+3  r+4|   the terms of blocks r+3 and r+4 go to member r+3,
//   round 2   r  r+1 |r+2|             those of block r+2 to member r+2,
//   round 3   r |r+1|                  those of block r+1 to member r+1
//
// What arrives are terms of as many blocks from r on, and they are added before the next round. In
// the end member r holds the sum of block r. The gathering of blocks is the same backwards.
//
//               rounds           a member's messages      elements sent by all together
//   all-reduce  2 ceil(log2 g)   at most 4 ceil(log2 g)   2 n (g-1)
//   all-gather  ceil(log2 g)     at most 2 ceil(log2 g)   n (g-1), n in all blocks together
//   broadcast   ceil(log2 g)     at most ceil(log2 g)     n (g-1), down a binomial tree
//
// Every element is summed in one place and in one order, so all members get the same bits. Nothing
// is sent where there are no elements: with fewer elements than members a sum is a tree.
//
// Round k of one member meets round k of the others, so a round in which a member has nothing to do
// stays in its list, empty. A start posts the first round and a finish the others, one after the
// other; then the messages of a pair have the same order at both ends as long as both start and
// finish their collectives in the same order.

#include <cstdint>
#include <vector>

namespace tessera {

/// Consecutive elements of the buffer that a collective works on.
struct Elements {
  int64_t begin = 0;
  int64_t count = 0;
};

struct MemberMessage {
  int member = 0;  // the other one
  Elements elements;
};

struct CollectiveRound {
  std::vector<MemberMessage> sends;
  std::vector<MemberMessage> receives;
  /// What is received are terms: they arrive in scratch, one after the other, and are then added to
  /// the named elements, in list order.
  bool adds = false;

  bool empty() const { return sends.empty() && receives.empty(); }
};

/// The sum of all members' `count` elements, on all of them.
std::vector<CollectiveRound> reduce_rounds(int members, int own, int64_t count);

/// The elements of scratch that reduce_rounds() needs: the most terms that arrive in one round,
/// about half of `count`.
int64_t reduce_scratch(int members, int own, int64_t count);

/// `counts` has the elements of each member's block; the blocks lie in that order.
std::vector<CollectiveRound> gather_rounds(int own, const std::vector<int64_t>& counts);

/// All `count` elements from member `root` to all.
std::vector<CollectiveRound> broadcast_rounds(int members, int own, int root, int64_t count);

}  // namespace tessera
