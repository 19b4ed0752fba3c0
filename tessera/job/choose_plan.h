#pragma once
// From placement options as users write them to a plan.

#include <ATen/ATen.h>

#include "tessera/config/job_config.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/number_type.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// The plan without the stage of every node. Throws InvalidInput, naming the option, where the
/// numbers do not fit each other.
Plan choose_plan(const JobConfig& config, const Graph& graph);

/// Which node runs on which stage, by --balance, where the plan does not say.
void assign_stages(const JobConfig& config, const Graph& graph, const Numbers& numbers, Plan* plan);

}  // namespace tessera
