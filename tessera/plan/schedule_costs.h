#pragma once
// By which costs a schedule orders the tasks that are free to begin. The order is correct by any;
// docs/pipeline.md says which is better when.

#include <string>
#include <vector>

namespace tessera {

enum class ScheduleCosts {
  kTasks,  // a unit for each task: nothing but the shape of the pipeline counts
  kFlops,  // the time of its kernels: uneven stages wait less, and may hold more
};

/// "tasks", "flops".
std::string to_string(ScheduleCosts costs);
/// Throws InvalidInput, naming the legal ones.
ScheduleCosts parse_schedule_costs(const std::string& name);
std::vector<std::string> schedule_costs_names();

}  // namespace tessera
