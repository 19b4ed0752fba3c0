#pragma once
// Predicts the bytes of stages: a footprint for each grid that stages have, and a flight for each
// group of chunks that ranks run together.
//
// Example:
//   MemoryModel model(graph, plan, options, places, stages_in_turn(4, 4));
//   model.bytes({{3, 9}})[1];  // of the nodes from place 3 to place 9, as stage 1

#include <map>
#include <vector>

#include "tessera/planner/balance.h"
#include "tessera/planner/balance_flight.h"
#include "tessera/planner/balance_footprint.h"

namespace tessera {

class MemoryModel {
 public:
  MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
              const std::vector<NodeId>& places, const std::vector<int>& stage_of_chunk);

  /// What segments, given as pairs of indices into the places, need as each of the stages (of an
  /// interleaved schedule: chunks); infinite where they are too many or too few.
  std::vector<double> bytes(const Segments& segments);

 private:
  std::vector<Flight> flights_;
  std::vector<std::vector<int64_t>> grids_;               // per flight
  std::map<std::vector<int64_t>, Footprint> footprints_;  // by grid
};

}  // namespace tessera
