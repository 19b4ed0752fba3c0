#pragma once
// What the parts of a step cost, for a timeline. Two rulers:
//
// clang-format off
//   kTasks  a forward costs 1, a backward 2, or 1 where weight gradients (1) are tasks of their own;
//           nothing else costs anything. An even pipeline then looks as papers draw its schedule.
//   kFlops  a kernel costs its operations at a fixed rate, a message latency + bytes / bandwidth.
//           This shows how uneven stages are, in seconds of an ideal device.
// clang-format on

#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

struct StepCosts {
  enum class Ruler { kTasks, kFlops };
  Ruler ruler = Ruler::kTasks;
  // For kFlops:
  double flops_per_second = 1e10;
  double latency_seconds = 0;
  double bytes_per_second = std::numeric_limits<double>::infinity();
  at::ScalarType real = at::kFloat;
};

/// Whether weight gradients are tasks of their own.
bool has_weight_tasks(const std::vector<Program>& programs);

/// What a task costs by the ruler kTasks; setting up and finishing cost nothing.
double task_units(const Enter& enter, bool weight_tasks);

/// Operations of one kernel: those of forward for forward, recomputation, input gradient and weight
/// gradient each; one per element for statistics of a piece; none for what touches no pixels.
double kernel_flops(const Run& run, const Graph& graph);

}  // namespace tessera
