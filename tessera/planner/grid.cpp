#include "tessera/planner/grid.h"

#include <algorithm>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/slow_work.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/workload.h"
#include "tessera/plan/limits.h"

namespace tessera {
namespace {

const ValueType& image_type(const Graph& graph) {
  for (ValueId input : graph.inputs())
    if (graph.type(input).element == Element::kReal) return graph.type(input);
  throw_error<InvalidInput>("[planner] the model has no image input");
}

bool fits(const Plan& plan, const ValueType& input) {
  try {
    check_plan(plan, input);
    return true;
  } catch (const InvalidInput&) {
    return false;
  }
}

/// The grid among all factorisations that fits with the least cost.
template <class PlanOf, class Cost>
std::vector<int64_t> cheapest(const ValueType& input, int64_t parts, const char* what,
                              PlanOf plan_of, Cost cost) {
  if (parts < 1 || parts > kMostParts)
    throw_error<InvalidInput>("[planner] {} {}: give 1 to {}", what, parts, kMostParts);
  std::vector<int64_t> best;
  std::pair<double, int64_t> best_cost;
  const std::vector<std::vector<int64_t>> grids = factorisations(parts, input.num_spatial());
  SlowWork progress("planning", "grids are tried", std::ssize(grids));
  for (const std::vector<int64_t>& grid : grids) {
    progress.advance();
    const Plan plan = plan_of(grid);
    if (!fits(plan, input)) continue;
    const std::pair<double, int64_t> grid_cost{cost(plan),
                                               *std::max_element(grid.begin(), grid.end())};
    if (!best.empty() && !(grid_cost < best_cost)) continue;
    best = grid;
    best_cost = grid_cost;
  }
  if (best.empty())
    throw_error<InvalidInput>("[planner] no grid of {} {} fits the input {}; use fewer", parts,
                              what, to_string(input));
  return best;
}

int64_t most_parts(const Plan& plan, int axis) {
  int64_t most = 1;
  for (int stage = 0; stage < plan.num_stages(); ++stage)
    most = std::max(most, plan.space_parts(stage, axis));
  return most;
}

}  // namespace

std::vector<std::vector<int64_t>> factorisations(int64_t parts, int axes) {
  if (axes == 1) return {{parts}};
  std::vector<std::vector<int64_t>> all;
  for (int64_t first = 1; first <= parts; ++first) {
    if (parts % first != 0) continue;
    for (std::vector<int64_t> rest : factorisations(parts / first, axes - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

std::vector<int64_t> best_space(const Graph& graph, const Plan& plan, int64_t parts) {
  check_plan(plan, image_type(graph));  // what does not fit for another reason says so itself
  const auto with_space = [&](const std::vector<int64_t>& grid) {
    Plan candidate = plan;
    candidate.space = grid;
    return candidate;
  };
  const int axes = image_type(graph).num_spatial();
  check_choice(graph, plan, parts, std::ssize(factorisations(parts, axes)));
  return cheapest(image_type(graph), parts, "workers", with_space, [&](const Plan& candidate) {
    return static_cast<double>(exchanged_elements(graph, candidate));
  });
}

std::vector<int64_t> best_pieces(const Graph& graph, const Plan& plan, int64_t count) {
  const ValueType& input = image_type(graph);
  check_plan(plan, input);
  const auto with_pieces = [&](const std::vector<int64_t>& grid) {
    Plan candidate = plan;
    candidate.pieces = grid;
    return candidate;
  };
  return cheapest(input, count, "pieces", with_pieces, [&](const Plan& candidate) {
    double surface = 0;
    for (int i = 0; i < input.num_spatial(); ++i) {
      const double size = static_cast<double>(input.axes[input.first_spatial() + i].size);
      surface +=
          static_cast<double>(most_parts(candidate, i) * candidate.pieces_along(i) - 1) / size;
    }
    return surface;
  });
}

}  // namespace tessera
