// Every member ends with everybody's row, in the same order, after a few messages.

#include "tessera/lower/merge_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace tessera::merge_tree_test {
namespace {

/// Passes all levels with lists in place of rows, side by side, and counts what a member sends.
void expect_all_rows_in_order(int members) {
  SCOPED_TRACE(members);
  std::vector<std::vector<TreeLevel>> trees;
  std::vector<std::vector<int>> rows;
  for (int member = 0; member < members; ++member) {
    trees.push_back(merge_tree(members, member));
    rows.push_back({member});
  }
  size_t deepest = 0;
  for (const auto& tree : trees) deepest = std::max(deepest, tree.size());
  // Members of smaller blocks have fewer levels; all end with the same whole, at the last level.
  for (size_t up = deepest; up-- > 0;) {
    const std::vector<std::vector<int>> before = rows;
    std::set<std::pair<int, int>> taken, given;
    for (int member = 0; member < members; ++member) {
      const auto& tree = trees[member];
      if (up >= tree.size()) continue;
      const TreeLevel& level = tree[tree.size() - 1 - up];
      rows[member].clear();
      for (int from : level.rows) {
        rows[member].insert(rows[member].end(), before[from].begin(), before[from].end());
        if (from != member) taken.insert({from, member});
      }
      for (int to : level.takers) given.insert({member, to});
    }
    EXPECT_EQ(taken, given) << "level " << up;
  }
  std::vector<int> all(members);
  std::iota(all.begin(), all.end(), 0);
  for (int member = 0; member < members; ++member) EXPECT_EQ(rows[member], all) << member;
}

TEST(MergeTree, EverybodyGetsEveryRowOnceInOrder) {
  for (int members = 1; members <= 130; ++members) expect_all_rows_in_order(members);
  for (int members : {169, 251, 256, 360, 997, 1000, 1024}) expect_all_rows_in_order(members);
}

size_t messages_of(int members, int own) {
  size_t messages = 0;
  for (const TreeLevel& level : merge_tree(members, own)) messages += level.takers.size();
  return messages;
}

TEST(MergeTree, OneRoundForAFewAndFewMessagesForMany) {
  EXPECT_TRUE(merge_tree(1, 0).empty());
  EXPECT_EQ(merge_tree(8, 3).size(), 1u);
  EXPECT_EQ(messages_of(8, 3), 7u);
  EXPECT_EQ(messages_of(16, 5), 6u);
  for (int own : {0, 511, 1023}) EXPECT_EQ(messages_of(1024, own), 20u);
  for (int own : {0, 2000, 4095}) EXPECT_LE(messages_of(4096, own), 28u);
  for (int members : {17, 97, 997, 1021})
    for (int own = 0; own < members; ++own) EXPECT_LE(messages_of(members, own), 48u);
}

}  // namespace
}  // namespace tessera::merge_tree_test
