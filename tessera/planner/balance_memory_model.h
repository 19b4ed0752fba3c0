#pragma once
// Predicts the bytes of stages without lowering them one by one: the network is lowered once for
// each grid that stages have, as one stage; what a part of it holds of one micro-batch is read off
// that program (balance_profile.h), and the schedule says how many are under way
// (balance_flight.h).
//
// Example:
//   MemoryModel model(graph, plan, options, places, single_chunks(4, 4));
//   model.bytes({{{3, 9}}})[1];  // of the nodes from place 3 to place 9, as stage 1

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/planner/balance.h"
#include "tessera/planner/balance_flight.h"
#include "tessera/planner/balance_profile.h"

namespace tessera {

/// A chain of chunks, each on a stage, and which of them are looked at together.
struct ChunkGroups {
  std::vector<int> stage_of_chunk;
  std::vector<ChunkTracks> groups;  // that ranks of one stage run
  std::vector<int> stage_of_group;
};

/// Every chunk by itself: consecutive stages, or the chunks of an interleaved schedule.
ChunkGroups single_chunks(int num_stages, int num_chunks);
/// The chunks of a V, stage by stage.
ChunkGroups ring_chunks(int num_stages);
/// Of GEMS: pairs of stages from either end, the middle one by itself.
ChunkGroups mirrored_chunks(int num_stages);

class MemoryModel {
 public:
  MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
              const std::vector<NodeId>& places, const ChunkGroups& chunks);

  /// When others send depends on where they are: the chunks are taken to begin about here.
  void expect(const std::vector<NodeId>& cuts);

  /// What segments of each track, given as pairs of indices into the places, need as each of the
  /// groups; infinite where they cannot be that group.
  std::vector<double> bytes(const std::vector<Segments>& tracks);

 private:
  /// The network as ranks of one grid hold it.
  struct Side {
    explicit Side(StepTable table) : steps(std::move(table)), profiler(steps) {}
    TrackProfile profile(const Segments& segments);

    const StepTable steps;
    Profiler profiler;
    std::map<std::pair<int, int>, StageProfile> known;  // of one segment: it is asked for often
  };

  const std::vector<NodeId> places_;
  std::vector<int> chunk_of_unit_;
  std::vector<Flights> flights_;                                 // per group
  std::vector<std::vector<int64_t>> grids_;                      // per group
  std::map<std::vector<int64_t>, std::unique_ptr<Side>> sides_;  // by grid
};

}  // namespace tessera
