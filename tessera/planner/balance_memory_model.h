#pragma once
// Predicts the bytes of stages without lowering anything: what a rank holds of one micro-batch
// (balance_walk.h) and how many of them are under way (balance_flight.h), for each grid that stages
// have.
//
// Example:
//   MemoryModel model(graph, plan, options, places, single_chunks(4, 4));
//   model.bytes({{3, 9}})[1];  // of the nodes from place 3 to place 9, as stage 1

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/planner/balance.h"
#include "tessera/planner/balance_flight.h"
#include "tessera/planner/balance_walk.h"

namespace tessera {

/// A chain of chunks, each on a stage, and which of them are looked at together.
struct ChunkGroups {
  std::vector<int> stage_of_chunk;
  std::vector<std::vector<int>> groups;  // chunks of one stage
  std::vector<int> stage_of_group;
};

/// Every chunk by itself: consecutive stages, or the chunks of an interleaved schedule.
ChunkGroups single_chunks(int num_stages, int num_chunks);
/// The chunks of a V, stage by stage.
ChunkGroups ring_chunks(int num_stages);

class MemoryModel {
 public:
  using Segments = std::vector<std::pair<int, int>>;

  MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
              const std::vector<NodeId>& places, const ChunkGroups& chunks);

  /// What segments, given as pairs of indices into the places, need as each of the groups; infinite
  /// where they cannot be that group.
  std::vector<double> bytes(const Segments& segments);

  /// What segments need as the two stages of a rank of GEMS, for each group's grid: the parameters
  /// of both, and the values of whichever has more, since only one is at work at a time.
  std::vector<double> mirrored_bytes(const Segments& segments);

 private:
  struct SegmentBytes {
    double fixed = 0;
    double peak = 0;
  };
  /// The network as ranks of one grid hold it.
  struct Side {
    Side(RankGraph rank_graph, int64_t micro_batches, StageWalk::Weights weights)
        : graph(std::move(rank_graph)), walk(graph, micro_batches, weights) {}
    std::vector<NodeRange> parts(const Segments& segments) const;
    const SegmentBytes& bytes_alone(const std::pair<int, int>& segment);

    const RankGraph graph;
    StageWalk walk;
    std::map<std::pair<int, int>, SegmentBytes> known_alone;
  };

  const Flights flights_;
  std::vector<std::vector<int64_t>> grids_;                      // per group
  std::map<std::vector<int64_t>, std::unique_ptr<Side>> sides_;  // by grid
};

}  // namespace tessera
