#pragma once
// How statistics of many ranks become one row on all of them: up a tree that follows from the
// number of members alone. Blocks of consecutive members combine their rows among themselves first;
// then every member takes one row of each other block from the member that stands where it stands,
// and combines again:
//
//   members  0 1 2 3 | 4 5 6 7      level 1: rows of one's own block
//            a-b-c-d   e-f-g-h
//            |         |            level 2: 0 and 4, 1 and 5, 2 and 6, 3 and 7 exchange
//            +---------+
//
// All members combine the same rows in the same order, so all have the same bits, and none sends
// more than a few messages: 20 of 1,024 members.

#include <vector>

namespace tessera {

struct TreeLevel {
  /// Whose row stands for each block; this member's own for its own block.
  std::vector<int> rows;
  /// The members that take this one's row.
  std::vector<int> takers;
};

/// The levels that a member passes, from its smallest block to the whole; none for one member.
std::vector<TreeLevel> merge_tree(int members, int own);

}  // namespace tessera
