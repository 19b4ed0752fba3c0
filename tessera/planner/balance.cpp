#include "tessera/planner/balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/planner/balance_memory.h"
#include "tessera/planner/balance_sums.h"

namespace tessera {
namespace {

struct Named {
  BalanceBy by;
  const char* name;
};
constexpr Named kNames[] = {{BalanceBy::kLayers, "layers"},
                            {BalanceBy::kParameters, "parameters"},
                            {BalanceBy::kMemory, "memory"},
                            {BalanceBy::kTime, "time"}};

/// Beyond this many, sums look at the cheapest places only: their tables grow with the square.
constexpr int kMostPlaces = 2048;

int count_segments(const Graph& graph, const Plan& plan, const BalanceOptions& options) {
  const int num_nodes = static_cast<int>(graph.nodes().size());
  const bool is_interleaved = plan.schedule == ScheduleKind::kInterleaved && plan.num_stages() > 1;
  const int chunks = is_interleaved ? options.chunks_per_stage : 1;
  if (chunks < 1)
    throw_error<InvalidInput>("[balance] {} chunks per stage; give at least 1", chunks);
  if (num_nodes < plan.num_stages())
    throw_error<InvalidInput>("[balance] the network has {} for {} stages; use at most {}",
                              counted(num_nodes, "node"), plan.num_stages(), num_nodes);
  if (num_nodes / plan.num_stages() < chunks)
    throw_error<InvalidInput>(
        "[balance] the network has {} for {} of {} chunks each; use at most {}",
        counted(num_nodes, "node"), counted(plan.num_stages(), "stage"), chunks,
        num_nodes / plan.num_stages());
  return plan.num_stages() * chunks;
}

StagedSegments choose(const Graph& graph, const Plan& plan, const BalanceOptions& options) {
  const int num_segments = count_segments(graph, plan, options);
  const std::vector<NodeId> places = cut_places(graph, num_segments);
  const std::vector<NodeId> few =
      cheapest_places(graph, places, std::max(kMostPlaces, num_segments + 1));
  switch (options.by) {
    case BalanceBy::kLayers:
      return balance_by_layers(graph, plan, num_segments, places);
    case BalanceBy::kParameters:
      return balance_by_parameters(graph, plan, num_segments, few);
    case BalanceBy::kMemory:
      return balance_by_memory(graph, plan, options, num_segments, places);
    default:
      return balance_by_time(graph, plan, num_segments, few, Roofline({}, options.real));
  }
}

}  // namespace

std::string to_string(BalanceBy by) {
  for (const Named& named : kNames)
    if (named.by == by) return named.name;
  TESSERA_CHECK(false, "unknown balance");
}

std::vector<std::string> balance_names() {
  std::vector<std::string> names;
  for (const Named& named : kNames) names.push_back(named.name);
  return names;
}

BalanceBy parse_balance(const std::string& name) {
  for (const Named& named : kNames)
    if (named.name == name) return named.by;
  throw_error<InvalidInput>("[balance] {} is unknown; use {}", name,
                            fmt::join(balance_names(), ", "));
}

std::map<std::string, int> balance(const Graph& graph, const Plan& plan,
                                   const BalanceOptions& options) {
  return stage_by_name(graph, choose(graph, plan, options));
}

}  // namespace tessera
