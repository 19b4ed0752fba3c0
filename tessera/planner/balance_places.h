#pragma once
// Where a network may be cut into stages, and what a cut into segments assigns to them.
//
// Nodes that the lowering makes one operator when they share a stage (a batch norm and the ReLU
// that alone reads it, a flatten and its linear layer) are not cut apart.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Consecutive segments of the node order, each on one stage.
struct StagedSegments {
  std::vector<NodeId> cuts;           // the first node of each segment, then the number of nodes
  std::vector<int> stage_of_segment;  // one fewer
  bool operator==(const StagedSegments&) const = default;
};

/// 0 1 2 3; with several chunks 0 1 2 3 0 1 2 3.
std::vector<int> stages_in_turn(int num_stages, int num_segments);
/// 0 1 2 3 2 1 0: segments of the encoder meet their mirror in the decoder.
std::vector<int> stages_in_v(int num_stages);

std::vector<int> stage_of_nodes(const StagedSegments& segments);
std::map<std::string, int> stage_by_name(const Graph& graph, const StagedSegments& segments);

/// The nodes that a segment may begin with, ascending, from 0 to the number of nodes. Only where
/// there would be fewer than `num_segments` segments does it cut what belongs together.
std::vector<NodeId> cut_places(const Graph& graph, int num_segments);

/// At most `most` of the places, among them the first and the last: of each run of neighbours the
/// one where the fewest bytes cross.
std::vector<NodeId> cheapest_places(const Graph& graph, const std::vector<NodeId>& places,
                                    int most);

/// Bytes of a whole value; `real_bytes` per real number.
int64_t value_bytes(const ValueType& type, int64_t real_bytes);

}  // namespace tessera
