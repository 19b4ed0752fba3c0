#include "tessera/lower/lower.h"

#include "tessera/base/slow_work.h"
#include "tessera/graph/number_type.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/emitter.h"
#include "tessera/lower/memory.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite.h"
#include "tessera/lower/widen.h"
#include "tessera/lower/workload.h"

namespace tessera {

Lowering::Lowering(const Graph& graph, const Plan& plan, const LowerOptions& options)
    : step_(make_step_plan(graph, plan, options)) {}

Program Lowering::program(int rank) const {
  Program program = Emitter(step_, rank).emit();
  if (is_narrow(step_.options.real)) widen(graph(), step_.options.device, &program);
  insert_allocations(&program);
  check_program(program);
  return program;
}

std::vector<Program> Lowering::programs() const {
  std::vector<Program> programs;
  SlowWork progress("planning", "workers have their program", num_ranks());
  for (int rank = 0; rank < num_ranks(); ++rank, progress.advance())
    programs.push_back(program(rank));
  check_messages(programs);
  return programs;
}

void Lowering::prove() const {
  if (num_ranks() <= kMostRanksProved) programs();
}

Lowered lower(const Graph& graph, const Plan& plan, const LowerOptions& options) {
  const Lowering lowering(graph, plan, options);
  return {lowering.graph(), lowering.programs(), lowering.holders()};
}

int64_t exchanged_elements(const Graph& graph, const Plan& plan) {
  check_inputs(graph, plan);
  check_workload(graph, plan);
  int64_t total = 0;
  for (const ValuePlan& value : place(rewrite(graph, without_multigrid(plan)), plan).values)
    total += exchanged_elements(value);
  return total;
}

}  // namespace tessera
