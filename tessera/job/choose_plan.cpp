#include "tessera/job/choose_plan.h"

#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>

#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/comm/mpi/environment.h"
#include "tessera/lower/chunks.h"
#include "tessera/lower/multigrid.h"
#include "tessera/planner/balance.h"
#include "tessera/planner/domains.h"
#include "tessera/planner/grid.h"

namespace tessera {
namespace {

/// Pieces as given: a grid such as 2x2, or a number that we spread over the axes.
std::vector<int64_t> resolve_pieces(const JobConfig& config, const Graph& graph, const Plan& plan) {
  const std::vector<int64_t> pieces = parse_sizes(config.pieces, "--pieces");
  return pieces.size() == 1 ? best_pieces(graph, plan, pieces[0]) : pieces;
}

/// One grid for all of `num_stages`, or one for each.
void resolve_stages(const JobConfig& config, int64_t num_stages, Plan* plan) {
  std::vector<std::vector<int64_t>> grids;
  if (config.space.ends_with(','))
    throw_error<InvalidInput>("[--space] {} ends with a comma; give a grid after it", config.space);
  if (!config.space.empty())
    for (const std::string& grid : split_text(config.space, ','))
      grids.push_back(parse_sizes(grid, "--space"));
  if (grids.empty()) grids.emplace_back();
  if (grids.size() == 1) grids.resize(num_stages, grids[0]);
  if (static_cast<int64_t>(grids.size()) != num_stages)
    throw_error<InvalidInput>(
        "[--space] {} has {} for {}; give one for all of them, or one for each", config.space,
        counted(std::ssize(grids), "grid"),
        config.layers > 1 ? counted(config.layers, "slice") + " of layers"
                          : counted(num_stages, "stage"));
  if (num_stages == 1)
    plan->space = grids[0];
  else
    plan->stages = grids;
}

/// 0: the product of the other options. Where none says anything, a launcher does: all processes
/// that it has started work.
int64_t num_workers(const JobConfig& config) {
  if (config.workers != 0 || config.replicas != 1 || config.domains != 0 || config.stages != 1 ||
      config.layers != 1 || !config.space.empty())
    return config.workers;
  const auto place = mpi::launched_place();
  return place && place->size > 1 ? place->size : 0;
}

/// Checks the number of workers, and chooses their grid where none is given.
void resolve_workers(const JobConfig& config, int64_t workers, const Graph& graph, Plan* plan) {
  if (plan->num_stages() > 1) {
    if (plan->num_ranks() != workers)
      throw_error<InvalidInput>(
          "[--workers] {} do not fit {} and {} of {} in all; leave "
          "--workers out, and give --space for more workers a stage",
          counted(workers, "worker"), counted(config.replicas, "replica"),
          counted(plan->num_stages(), "stage"), counted(plan->ranks_per_replica(), "worker"));
    return;
  }
  if (workers < 1) throw_error<InvalidInput>("[--workers] {} must be at least 1", workers);
  const int64_t given = product_of({config.replicas, product_of(plan->space)});
  if (workers % config.replicas != 0 || (!plan->space.empty() && given != workers))
    throw_error<InvalidInput>(
        "[--workers] {} do not fit {}{}; leave --workers out, or give --replicas "
        "a "
        "divisor of it and no --space",
        counted(workers, "worker"), counted(config.replicas, "replica"),
        plan->space.empty() ? "" : fmt::format(" x space {}", config.space));
  if (plan->space.empty()) plan->space = best_space(graph, *plan, workers / config.replicas);
}

/// A plan in a file, refused by its name where it does not fit the network.
Plan read_fitting_plan(const std::string& path, const Graph& graph) {
  Plan plan = read_plan(path);
  try {
    check_plan(plan, graph.type(graph.inputs()[0]));
    if (!plan.stage_of.empty()) stages_of_nodes(graph, plan);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[--plan] {}: {}", path, error.what());
  }
  return plan;
}

}  // namespace

Plan choose_plan(const JobConfig& config, const Graph& graph) {
  Plan plan;
  if (!config.plan.empty()) return read_fitting_plan(config.plan, graph);
  plan.data = config.replicas;
  plan.micro_batches = config.micro_batches;
  plan.schedule = parse_schedule(config.pipeline_schedule);
  plan.schedule_costs = parse_schedule_costs(config.pipeline_costs);
  if (!config.scratch.empty()) plan.scratch_bytes = parse_bytes(config.scratch, "--scratch");
  if (config.layers > 1 && config.multigrid.empty())
    throw_error<InvalidInput>(
        "[--layers] {} slices of layers run at once by multigrid alone, which is approximate; say "
        "--multigrid, such as levels=2,coarsening=4,forward=2,backward=1",
        config.layers);
  if (!config.multigrid.empty()) plan.multigrid = parse_multigrid(config.multigrid);
  const DomainGroups groups = config.domains == 0
                                  ? DomainGroups{}
                                  : group_by_domains(graph, static_cast<int>(config.domains));
  // Slices of layers are stages that multigrid lets run at once.
  resolve_stages(config, std::max(config.stages, config.layers) * std::max(groups.count(), 1),
                 &plan);
  check_num_ranks(plan);
  if (config.domains > 0) plan.stage_of = stages_by_domains(graph, plan, groups);
  if (const int64_t workers = num_workers(config); workers != 0)
    resolve_workers(config, workers, graph, &plan);
  if (!config.pieces.empty()) plan.pieces = resolve_pieces(config, graph, plan);
  return plan;
}

void assign_stages(const JobConfig& config, const Graph& graph, const Numbers& numbers,
                   Plan* plan) {
  if (plan->num_stages() == 1 || !plan->stage_of.empty()) return;
  if (plan->multigrid) {
    plan->stage_of = assign_layers(graph, *plan->multigrid, plan->num_stages());
    return;
  }
  const std::vector<std::string> names = balance_names();
  if (std::find(names.begin(), names.end(), config.balance) == names.end()) {
    if (access(config.balance.c_str(), R_OK) != 0)
      throw_error<InvalidInput>("[--balance] {} is not a file that can be read; use {}, or a file",
                                config.balance, fmt::join(names, ", "));
    plan->stage_of = read_balance(graph, plan->num_stages(), config.balance);
    return;
  }
  BalanceOptions balancing;
  balancing.by = parse_balance(config.balance);
  balancing.real = numbers.type;
  balancing.device = numbers.device;
  balancing.chunks_per_stage = static_cast<int>(config.chunks);
  plan->stage_of = balance(graph, *plan, balancing);
}

}  // namespace tessera
