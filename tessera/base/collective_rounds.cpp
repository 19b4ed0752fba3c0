#include "tessera/base/collective_rounds.h"

#include <algorithm>

namespace tessera {
namespace {

/// The blocks of all members, one after the other around a circle: after the last comes the first.
class BlockCircle {
 public:
  explicit BlockCircle(const std::vector<int64_t>& counts)
      : size_(static_cast<int>(counts.size())), begins_{0} {
    for (int64_t count : counts) begins_.push_back(begins_.back() + count);
  }
  /// Even parts; the first blocks have one more where `count` is not a multiple. By formula: who
  /// asks for every member in turn would else list all blocks for each.
  BlockCircle(int size, int64_t count) : size_(size), base_(count / size), extra_(count % size) {}

  int size() const { return size_; }

  /// A message to or from `member` of `num` blocks from `first` on: two where they pass the end,
  /// none where they are empty.
  void add_run(int member, int first, int num, std::vector<MemberMessage>* messages) const {
    first %= size();
    const int end = std::min(first + num, size());
    add(member, first, end, messages);
    add(member, 0, num - (end - first), messages);
  }

 private:
  int64_t begin(int block) const {
    if (!begins_.empty()) return begins_[block];
    return block * base_ + std::min<int64_t>(block, extra_);
  }
  void add(int member, int first, int end, std::vector<MemberMessage>* messages) const {
    const Elements run{begin(first), begin(end) - begin(first)};
    if (run.count > 0) messages->push_back({member, run});
  }

  int size_;
  int64_t base_ = 0;
  int64_t extra_ = 0;
  std::vector<int64_t> begins_;  // and the end; none where blocks are even
};

/// In a round, a member has to do with `span` blocks from its own on; those that are `distance` and
/// more ahead travel.
struct Step {
  int distance = 0;
  int span = 0;
};

std::vector<Step> halving_steps(int members) {
  std::vector<Step> steps;
  for (int span = members; span > 1; span = steps.back().distance)
    steps.push_back({(span + 1) / 2, span});
  return steps;
}

void append_reduce_scatter(const BlockCircle& blocks, int own,
                           std::vector<CollectiveRound>* rounds) {
  const int size = blocks.size();
  for (const auto& [distance, span] : halving_steps(size)) {
    CollectiveRound& round = rounds->emplace_back();
    round.adds = true;
    blocks.add_run((own + distance) % size, own + distance, span - distance, &round.sends);
    blocks.add_run((own + size - distance) % size, own, span - distance, &round.receives);
  }
}

void append_all_gather(const BlockCircle& blocks, int own, std::vector<CollectiveRound>* rounds) {
  const int size = blocks.size();
  std::vector<Step> steps = halving_steps(size);
  std::reverse(steps.begin(), steps.end());
  for (const auto& [distance, span] : steps) {
    CollectiveRound& round = rounds->emplace_back();
    blocks.add_run((own + size - distance) % size, own, span - distance, &round.sends);
    blocks.add_run((own + distance) % size, own + distance, span - distance, &round.receives);
  }
}

}  // namespace

std::vector<CollectiveRound> reduce_rounds(int members, int own, int64_t count) {
  const BlockCircle blocks(members, count);
  std::vector<CollectiveRound> rounds;
  append_reduce_scatter(blocks, own, &rounds);
  append_all_gather(blocks, own, &rounds);
  return rounds;
}

int64_t reduce_scratch(int members, int own, int64_t count) {
  int64_t most = 0;
  for (const CollectiveRound& round : reduce_rounds(members, own, count)) {
    int64_t terms = 0;
    for (const MemberMessage& message : round.receives)
      if (round.adds) terms += message.elements.count;
    most = std::max(most, terms);
  }
  return most;
}

std::vector<CollectiveRound> gather_rounds(int own, const std::vector<int64_t>& counts) {
  std::vector<CollectiveRound> rounds;
  append_all_gather(BlockCircle(counts), own, &rounds);
  return rounds;
}

// Seen from the root, members 0 to d-1 have the elements before the round of distance d, and member
// i gives them to member i + d.
std::vector<CollectiveRound> broadcast_rounds(int members, int own, int root, int64_t count) {
  const int from_root = (own + members - root) % members;
  const auto member_at = [=](int position) { return (position + root) % members; };
  std::vector<CollectiveRound> rounds;
  for (int distance = 1; distance < members; distance *= 2) {
    CollectiveRound& round = rounds.emplace_back();
    if (count == 0) continue;
    if (from_root < distance && from_root + distance < members)
      round.sends.push_back({member_at(from_root + distance), {0, count}});
    if (from_root >= distance && from_root < 2 * distance)
      round.receives.push_back({member_at(from_root - distance), {0, count}});
  }
  return rounds;
}

}  // namespace tessera
