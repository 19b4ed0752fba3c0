#pragma once
// One rank's program while it is being written: its buffers and instructions, and what the writers
// of its parts (values, gradients, statistics, buckets) know in common.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/lower/program.h"
#include "tessera/lower/rank_view.h"
#include "tessera/lower/step_plan.h"

namespace tessera {

/// Forward or backward through the network.
enum class Pass { kForward, kBackward };

using NodeKey = std::pair<NodeId, int>;   // node, micro-batch
using PieceKey = std::pair<NodeId, int>;  // node, piece of its output

class ProgramWriter {
 public:
  ProgramWriter(const StepPlan& step, int rank);
  ProgramWriter(const ProgramWriter&) = delete;
  ProgramWriter& operator=(const ProgramWriter&) = delete;

  const StepPlan& step;
  const PlacedGraph& placed;
  const Graph& graph;
  const RankView here;
  Program program;

  /// What kernels read of a node's statistics, where it has some.
  std::map<NodeKey, BufferId> merged_statistics;

  template <class T>
  void append(T instruction) {
    program.instructions.emplace_back(std::move(instruction));
  }
  BufferId add_buffer(std::string name, BufferKind kind, const Box& box,
                      ElementType element = ElementType::kReal);
  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  View whole(BufferId id) const { return {id, program.buffers[id].box}; }
  /// Writes zeros to a whole buffer.
  void fill(BufferId id) { append(Fill{id, {program.buffers[id].box}}); }

  /// Begins the Run of a piece with what every kernel of the node reads: weights and running
  /// statistics. Scratch comes along where the operator asks for it in this phase.
  Run begin_run(NodeId node, Phase phase, int piece);
  /// ... of a box of the piece.
  Run begin_run(NodeId node, Phase phase, int piece, const Box& box);
  void add_merged_statistics(NodeId node, int piece, std::vector<Argument>* arguments) const;

  View weight(ParameterId parameter) const { return whole(weight_of_.at(parameter)); }
  ElementType element_of(ValueId value) const;
  ElementType element_of_gradient(ValueId value) const;

 private:
  at::ScalarType number_in(Phase phase, const Node& node) const;

  std::map<ParameterId, BufferId> weight_of_;
};

}  // namespace tessera
