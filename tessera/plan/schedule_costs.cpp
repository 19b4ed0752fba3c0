#include "tessera/plan/schedule_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"

namespace tessera {

std::string to_string(ScheduleCosts costs) {
  return costs == ScheduleCosts::kTasks ? "tasks" : "flops";
}

std::vector<std::string> schedule_costs_names() {
  return {to_string(ScheduleCosts::kTasks), to_string(ScheduleCosts::kFlops)};
}

ScheduleCosts parse_schedule_costs(const std::string& name) {
  for (ScheduleCosts costs : {ScheduleCosts::kTasks, ScheduleCosts::kFlops})
    if (to_string(costs) == name) return costs;
  throw_error<InvalidInput>("[schedule] costs {} are unknown; use {}", name,
                            fmt::join(schedule_costs_names(), ", "));
}

}  // namespace tessera
