#include "tessera/simulate/step_costs.h"

#include "tessera/base/error.h"

namespace tessera {

bool has_weight_tasks(const std::vector<Program>& programs) {
  for (const Program& program : programs)
    for (const Instruction& instruction : program.instructions)
      if (const auto* enter = std::get_if<Enter>(&instruction);
          enter && enter->part == Enter::Part::kTask && enter->task.kind == TaskKind::kWeight)
        return true;
  return false;
}

double task_units(const Enter& enter, bool weight_tasks) {
  if (enter.part != Enter::Part::kTask) return 0;
  return enter.task.kind == TaskKind::kBackward && !weight_tasks ? 2 : 1;
}

double kernel_flops(const Run& run, const Graph& graph) {
  const Node& node = graph.node(run.node);
  switch (run.phase) {
    case Phase::kForward:
    case Phase::kRecompute:
    case Phase::kInputGradient:
    case Phase::kWeightGradient:
      return node.op->flops(run.boxes.at(0), node.types);
    case Phase::kPieceStatistics:
    case Phase::kPieceGradStatistics:
      return static_cast<double>(run.boxes.at(0).volume());
    case Phase::kCombineStatistics:
    case Phase::kMergeStatistics:
    case Phase::kUpdateBuffers:
    case Phase::kCombineGradStatistics:
      return 0;
  }
  TESSERA_CHECK(false, "unknown phase");
}

}  // namespace tessera
