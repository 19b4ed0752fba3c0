#pragma once
// A network as one rank of a grid would hold it if all nodes were on its stage: how many bytes each
// buffer of one micro-batch has. Which of them a rank holds depends on the nodes of its stage;
// their sizes do not, so one placement serves the prediction of any assignment.

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Consumers of a value that share a buffer (see lower/edges.h).
struct RankGroup {
  double need_bytes = 0;  // with margins
  double sent_bytes = 0;  // of that inside the image: what has to come from another stage
  bool may_be_home = false;
  bool covers_piece = false;
  bool arrives_whole = false;  // a message from another stage is the buffer
};

struct RankValue {
  NodeId origin = -1;  // the node that makes it; for an input, the first that reads it
  bool is_input = false;
  bool needs_gradient = false;
  bool is_recomputed = false;
  double piece_bytes = 0;
  std::vector<RankGroup> groups;  // those of the lowering, then one for all direct readings
  int direct_group() const { return static_cast<int>(groups.size()) - 1; }
};

struct RankReading {
  ValueId value = -1;
  int group = -1;
  bool backward_reads = false;  // the node's own backward
  bool passes_gradient = false;
};

struct RankNode {
  std::vector<RankReading> readings;
  ValueId output = -1;
  double saved_bytes = 0;
  bool stores_output = true;
  bool keeps_output = false;
  bool returns_dense = false;
  bool is_loss = false;
  bool has_trainable = false;
  std::vector<ParameterId> parameters;  // and buffers
};

struct RankGraph {
  std::vector<RankNode> nodes;  // of the rewritten graph
  std::vector<RankValue> values;
  std::vector<std::vector<NodeId>> readers;  // per value: nodes that read it, ascending
  std::vector<double> parameter_bytes;       // with gradients and the optimiser's copies
  std::vector<NodeId> first_node_of_place;   // per place asked for: where it lies in `nodes`
};

struct RankGraphOptions {
  std::vector<int64_t> grid;
  int64_t real_bytes = 4;
  int64_t optimiser_copies = 0;
};

/// `plan` gives the data parts, the pieces and the micro-batches; `places` are nodes of `graph`.
RankGraph rank_graph(const Graph& graph, const Plan& plan, const std::vector<NodeId>& places,
                     const RankGraphOptions& options);

}  // namespace tessera
