#include "tessera/lower/rank_classes.h"

#include <algorithm>
#include <map>

#include "tessera/lower/merge_tree.h"

namespace tessera {
namespace {

/// A hash of all that a rank's program depends on, built rank by rank from one pass over the
/// pieces, the needs and the moves of all: in a time that grows with their number.
class Signatures {
 public:
  explicit Signatures(const StepPlan& step)
      : step_(step), hashes_(step.placed.plan.num_ranks(), 0), peers_(hashes_.size()) {
    add_places();
    for (const ValuePlan& value : step.placed.values) {
      add_pieces(value);
      for (const EdgeGroup& group : value.groups) add_group(value, group);
      add_needs(value, value.gradient_halo.needs);
    }
  }

  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  void mix(int rank, uint64_t number) {
    uint64_t hash = (hashes_[rank] ^ number) * 0x9e3779b97f4a7c15;
    hashes_[rank] = hash ^ (hash >> 29);
  }
  void mix_shape(int rank, const Box& box) {
    for (int axis = 0; axis < box.num_axes(); ++axis)
      mix(rank, static_cast<uint64_t>(box[axis].size()));
  }

  /// The stage, and how a rank combines statistics with the others of it.
  void add_places() {
    const Plan& plan = step_.placed.plan;
    for (int stage = 0; stage < plan.num_stages(); ++stage) {
      const Members ranks = plan.stage_ranks(stage);
      for (int i = 0; i < std::ssize(ranks); ++i) {
        mix(ranks[i], static_cast<uint64_t>(stage));
        for (const TreeLevel& level : merge_tree(static_cast<int>(ranks.size()), i)) {
          mix(ranks[i], level.rows.size());
          mix(ranks[i], level.takers.size());
        }
      }
    }
    const NodeId num_nodes = static_cast<NodeId>(step_.graph().nodes().size());
    bool any_late = false;
    for (NodeId node = 0; node < num_nodes; ++node) any_late |= step_.updates_buffers_late(node);
    if (!any_late && plan.schedule != ScheduleKind::kGems) return;
    // Then each rank may send another number of messages, and a loss combines over two stages.
    for (int rank = 0; rank < std::ssize(hashes_); ++rank) mix(rank, static_cast<uint64_t>(rank));
  }

  void add_pieces(const ValuePlan& value) {
    for (int p = 0; p < value.layout.num_pieces(); ++p) {
      const Piece& piece = value.layout.piece(p);
      mix_shape(piece.rank, piece.box);
      if (!piece.box.empty()) mix_shape(piece.rank, value.home_box(p));
    }
  }

  void add_group(const ValuePlan& value, const EdgeGroup& group) {
    for (int q = 0; q < std::ssize(group.needs); ++q)
      if (!group.needs[q].box.empty())
        mix(group.needs[q].rank, group.covers_piece[q] + 2 * group.in_place[q]);
    add_needs(value, group.needs);
  }

  void add_needs(const ValuePlan& value, const std::vector<Need>& needs) {
    const Box image = Box::whole(value.layout.global_shape());
    for (std::map<int, int>& peers : peers_) peers.clear();
    for (const Need& need : needs) {
      mix_shape(need.rank, need.box);
      if (need.box.empty()) continue;
      mix_shape(need.rank, intersect(need.box, image));
      for (int p : value.layout.pieces_meeting(need.box)) {
        const Piece& piece = value.layout.piece(p);
        const Box moved = intersect(piece.box, need.box);
        add_end(need.rank, piece.rank, moved, 1);
        if (piece.rank != need.rank) add_end(piece.rank, need.rank, moved, 2);
      }
    }
  }

  /// One end of a move. Peers are called by the order in which they first appear.
  void add_end(int rank, int peer, const Box& moved, uint64_t side) {
    const int called =
        rank == peer
            ? -1
            : peers_[rank].try_emplace(peer, static_cast<int>(peers_[rank].size())).first->second;
    mix(rank, side);
    mix(rank, static_cast<uint64_t>(called));
    mix_shape(rank, moved);
  }

  const StepPlan& step_;
  std::vector<uint64_t> hashes_;
  std::vector<std::map<int, int>> peers_;  // of one group, per rank
};

}  // namespace

std::vector<std::vector<int>> rank_classes(const StepPlan& step) {
  std::vector<std::vector<int>> classes;
  std::map<uint64_t, size_t> class_of;
  const Signatures signatures(step);
  for (int rank = 0; rank < std::ssize(signatures.hashes()); ++rank) {
    const auto [found, is_new] = class_of.try_emplace(signatures.hashes()[rank], classes.size());
    if (is_new) classes.emplace_back();
    classes[found->second].push_back(rank);
  }
  return classes;
}

}  // namespace tessera
