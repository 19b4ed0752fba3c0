#include "tessera/lower/merge_tree.h"

#include <cstdlib>

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"

namespace tessera {
namespace {

constexpr int kMostBlocks = 8;

/// Into how many blocks so many members are cut: about as many on each level, and all of one size
/// where that is possible, so that nobody sends twice to a block.
int num_blocks(int members) {
  if (members <= kMostBlocks) return members;
  const auto reaches = [&](int blocks, int levels) {
    int64_t reached = 1;
    for (int level = 0; level < levels; ++level) reached *= blocks;
    return reached >= members;
  };
  int levels = 1, even = 2;
  while (!reaches(kMostBlocks, levels)) ++levels;
  while (!reaches(even, levels)) ++even;
  int best = 0;
  for (int blocks = 2; blocks <= kMostBlocks; ++blocks)
    if (members % blocks == 0 && (best == 0 || std::abs(blocks - even) < std::abs(best - even)))
      best = blocks;
  return best > 0 ? best : even;
}

void add_levels(const Range& members, int own, std::vector<TreeLevel>* levels) {
  const int size = static_cast<int>(members.size());
  if (size == 1) return;
  const int count = num_blocks(size);
  std::vector<Range> blocks;
  Range home;
  for (int i = 0; i < count; ++i) {
    blocks.push_back(split(size, count, i).shifted(members.begin));
    if (blocks.back().contains(own)) home = blocks.back();
  }
  add_levels(home, own, levels);
  const int64_t place = own - home.begin;
  TreeLevel level;
  for (const Range& block : blocks) {
    if (block == home) {
      level.rows.push_back(own);
      continue;
    }
    level.rows.push_back(static_cast<int>(block.begin + place % block.size()));
    for (int64_t taker = place; taker < block.size(); taker += home.size())
      level.takers.push_back(static_cast<int>(block.begin + taker));
  }
  levels->push_back(std::move(level));
}

}  // namespace

std::vector<TreeLevel> merge_tree(int members, int own) {
  TESSERA_CHECK(own >= 0 && own < members, "member {} of {}", own, members);
  std::vector<TreeLevel> levels;
  add_levels({0, members}, own, &levels);
  return levels;
}

}  // namespace tessera
