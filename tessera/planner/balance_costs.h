#pragma once
// What segments of a network cost in parameters, time and bytes received, for partitions that look
// at nothing but sums. Segments are given by indices into a list of cut places.

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/lower/cost_model.h"
#include "tessera/planner/balance_partition.h"

namespace tessera {

/// One number for every pair begin < end of cut places.
class SegmentTable {
 public:
  explicit SegmentTable(int num_places)
      : rows_(static_cast<size_t>(num_places)), entries_(rows_ * (rows_ - 1) / 2, 0) {}
  double& at(int begin, int end) { return entries_[index(begin, end)]; }
  double at(int begin, int end) const { return entries_[index(begin, end)]; }

 private:
  size_t index(size_t begin, size_t end) const { return end * (end - 1) / 2 + begin; }

  size_t rows_;
  std::vector<double> entries_;
};

/// Elements of the parameters that a segment uses, each counted once.
SegmentTable parameter_elements(const Graph& graph, const std::vector<NodeId>& places);

/// Bytes of the values that a segment reads and that nodes before it make.
SegmentTable received_bytes(const Graph& graph, const std::vector<NodeId>& places,
                            int64_t real_bytes);

/// What all kernels of forward and backward cost before each place, on whole values.
std::vector<double> training_time_before(const Graph& graph, const std::vector<NodeId>& places,
                                         const CostModel& costs);

/// Whether people count the node as a layer: it multiplies by a weight. Norms go with theirs.
bool is_layer(const Node& node);

}  // namespace tessera
