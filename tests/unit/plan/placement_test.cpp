#include "tessera/plan/placement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/geometry/split.h"
#include "tessera/zoo/zoo.h"

namespace tessera::placement_test {
namespace {

TEST(Placement, CutsTheLevelsOfAUnetAtTheSamePlaces) {
  const Graph graph = build_model("unet2d:base=2,depth=4", {1, 3, 96, 80});
  const Placement placement(graph, {1, {3, 2}, {}});
  const Layout image = placement.layout_of(graph.type(graph.inputs()[0]));
  for (const Value& value : graph.values()) {
    if (value.type.num_spatial() != 2 || value.type.first_spatial() != 2) continue;
    const Layout layout = placement.layout_of(value.type);
    for (int p = 0; p < layout.num_pieces(); ++p)
      for (int axis : {2, 3}) {
        const int64_t stride = value.type.axes[axis].stride.num;
        EXPECT_EQ(layout.piece(p).box[axis].begin * stride, image.piece(p).box[axis].begin)
            << value.name;
      }
  }
}

TEST(Placement, CutsValuesOfOneSizeAndStrideAlike) {
  const Graph graph = build_model("unet2d:base=2,depth=4", {1, 3, 43, 38});
  const Placement placement(graph, {1, {3, 2}, {2, 1}});
  std::map<std::string, Layout> seen;
  for (const Value& value : graph.values()) {
    if (value.type.num_axes() != 4) continue;
    ValueType type = value.type;
    type.axes[1].size = 1;
    const Layout layout = placement.layout_of(type);
    std::string key = to_string(type);
    for (const Axis& axis : type.axes)
      key += fmt::format(" {}/{}", axis.stride.num, axis.stride.den);
    const auto [first, added] = seen.emplace(key, layout);
    EXPECT_TRUE(added || first->second == layout) << value.name;
  }
}

TEST(Placement, PutsReplicasFirstAndPiecesInsideRanks) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({4, 1, 8, 8}));
  const Layout layout = Placement(graph, {2, {2, 1}, {1, 2}}).layout_of(graph.type(x));
  ASSERT_EQ(layout.num_pieces(), 8);
  EXPECT_EQ(layout.piece(5), (Piece{Box{{2, 4}, {0, 1}, {0, 4}, {4, 8}}, 2}));
  EXPECT_EQ(layout.piece(6), (Piece{Box{{2, 4}, {0, 1}, {4, 8}, {0, 4}}, 3}));
}

TEST(Placement, SpreadsTheBatchOfFeaturesOverAllRanks) {
  Graph graph;
  graph.add_input("image", ValueType::image({6, 1, 8, 8}));
  ValueType features;
  features.axes = {{AxisKind::kBatch, 6, -1, {}}, {AxisKind::kChannel, 5, -1, {}}};
  const Layout layout = Placement(graph, {2, {3, 1}, {}}).layout_of(features);
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(layout.piece(rank).box, (Box{{rank, rank + 1}, {0, 5}}));
}

// ---- Micro-batches and stages -------------------------------------------------------------------

/// The samples of a replica in a micro-batch: the batch is cut into micro-batches first.
Range samples_of(const Plan& plan, int64_t batch, int64_t micro_batch, int64_t replica) {
  const Range together = split(batch, plan.micro_batches, micro_batch);
  const Range part = split(together.size(), plan.data, replica);
  return {together.begin + part.begin, together.begin + part.end};
}

ValueType features_of(int64_t batch) {
  ValueType features;
  features.axes = {{AxisKind::kBatch, batch, -1, {}}, {AxisKind::kChannel, 5, -1, {}}};
  return features;
}

/// Seven samples in three micro-batches: sizes differ, and so do the replicas' parts.
struct Pipelined {
  explicit Pipelined(std::vector<std::vector<int64_t>> grids,
                     ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward) {
    graph.add_input("image", ValueType::image({7, 2, 8, 12}));
    plan.data = 2;
    plan.pieces = {1, 2};
    plan.stages = std::move(grids);
    plan.micro_batches = 3;
    plan.schedule = schedule;
  }
  Layout layout_of(const ValueType& type, int stage) const {
    return Placement(graph, plan).layout_of(type, stage);
  }
  const ValueType& image() const { return graph.type(graph.inputs()[0]); }

  /// Pieces of a micro-batch, which lie together, as many for each.
  std::vector<Piece> pieces_of(const Layout& layout, int64_t micro_batch) const {
    const int64_t count = layout.num_pieces() / plan.micro_batches;
    EXPECT_EQ(count * plan.micro_batches, layout.num_pieces());
    return {layout.pieces().begin() + count * micro_batch,
            layout.pieces().begin() + count * (micro_batch + 1)};
  }

  Graph graph;
  Plan plan;
};

int64_t volume_of(const std::vector<Piece>& pieces) {
  int64_t volume = 0;
  for (const Piece& piece : pieces) volume += piece.box.volume();
  return volume;
}

/// A layout's pieces are disjoint and cover the value (its constructor sees to that), so those of a
/// micro-batch are exactly its samples where none of them leaves these and none is missing.
TEST(Placement, ListsPiecesMicroBatchByMicroBatch) {
  const Pipelined pipelined({{2, 1}, {1, 3}, {}});
  for (const ValueType& type : {pipelined.image(), features_of(7)})
    for (int stage = 0; stage < 3; ++stage) {
      const Layout layout = pipelined.layout_of(type, stage);
      const Members ranks = pipelined.plan.stage_ranks(stage);
      const int64_t per_sample = Box::whole(type.shape()).volume() / 7;
      for (int64_t m = 0; m < 3; ++m) {
        SCOPED_TRACE(fmt::format("{} stage {} micro-batch {}", to_string(type), stage, m));
        const std::vector<Piece> pieces = pipelined.pieces_of(layout, m);
        EXPECT_EQ(volume_of(pieces), split(7, 3, m).size() * per_sample);
        for (const Piece& piece : pieces) {
          ASSERT_TRUE(std::binary_search(ranks.begin(), ranks.end(), piece.rank)) << piece.rank;
          const int64_t replica = piece.rank / pipelined.plan.ranks_per_replica();
          const Range samples = samples_of(pipelined.plan, 7, m, replica);
          EXPECT_TRUE(samples.contains(piece.box[0])) << to_string(piece.box);
          EXPECT_TRUE(type.num_spatial() == 0 || piece.box[0] == samples);
        }
      }
    }
}

/// Stage 1 has three ranks side by side in each of two replicas, and two pieces on each.
TEST(Placement, StagesOwnTheirValuesOnGridsOfTheirOwn) {
  const Pipelined pipelined({{2, 1}, {1, 3}, {}});
  const Layout layout = pipelined.layout_of(pipelined.image(), 1);
  ASSERT_EQ(layout.num_pieces(), 3 * 2 * 3 * 2);
  const Members ranks{2, 3, 4, 8, 9, 10};
  for (int i = 0; i < layout.num_pieces(); ++i) {
    EXPECT_EQ(layout.piece(i).rank, ranks[i / 2 % 6]);
    EXPECT_EQ(layout.piece(i).box[2], (Range{0, 8}));
    EXPECT_EQ(layout.piece(i).box[3], split(12, 6, i % 6));
  }
  const Layout last = pipelined.layout_of(pipelined.image(), 2);
  ASSERT_EQ(last.num_pieces(), 3 * 2 * 2);
  for (int i = 0; i < last.num_pieces(); ++i) EXPECT_EQ(last.piece(i).rank, i / 2 % 2 ? 11 : 5);
}

TEST(Placement, GemsMirrorsOddMicroBatches) {
  const Pipelined gems({{2, 1}, {1, 3}, {2, 1}}, ScheduleKind::kGems);
  const Pipelined plain({{2, 1}, {1, 3}, {2, 1}});
  for (const ValueType& type : {gems.image(), features_of(7)})
    for (int stage = 0; stage < 3; ++stage) {
      const Layout layout = gems.layout_of(type, stage);
      for (int64_t m = 0; m < 3; ++m) {
        const int place = m == 1 ? 2 - stage : stage;
        EXPECT_EQ(gems.pieces_of(layout, m), plain.pieces_of(plain.layout_of(type, place), m))
            << to_string(type) << " stage " << stage << " micro-batch " << m;
      }
    }
}

TEST(Placement, SpreadsTheFeaturesOfAMicroBatchOverItsStage) {
  const Pipelined pipelined({{}, {2, 2}, {}});
  const Layout layout = pipelined.layout_of(features_of(7), 1);
  ASSERT_EQ(layout.num_pieces(), 3 * 8);  // no pieces inside a rank
  for (int64_t m = 0; m < 3; ++m)
    for (int i = 0; i < 8; ++i) {
      const Piece& piece = layout.piece(static_cast<int>(m) * 8 + i);
      EXPECT_EQ(piece.rank, pipelined.plan.stage_ranks(1)[i]);
      const Range replica = samples_of(pipelined.plan, 7, m, i / 4);
      const Range own = split(replica.size(), 4, i % 4);
      EXPECT_EQ(piece.box[0], (Range{replica.begin + own.begin, replica.begin + own.end}));
      EXPECT_EQ(piece.box[1], (Range{0, 5}));
    }
}

}  // namespace
}  // namespace tessera::placement_test
