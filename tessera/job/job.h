#pragma once
// A job: a network, the plan that places it on ranks, and how those ranks run. Everything that
// Tessera does with a network (verify, measure, train, predict) starts from one, and so may a C++
// program: see run.h.
//
// Example:
//   JobConfig config;
//   config.model = "unet2d:base=16";
//   config.space = "2x2";
//   Job job = resolve_job(config);          // as the command line does it
//   Job own = make_job(std::move(graph));   // a graph of one's own, on one rank
//   own.plan.space = {2, 2};

#include <optional>
#include <string>

#include "tessera/config/job_config.h"
#include "tessera/graph/number_type.h"
#include "tessera/job/launch.h"
#include "tessera/job/model_source.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/device.h"

namespace tessera {

struct Job {
  LoadedModel model;  // with batch norm by micro-batches where that is asked for
  Plan plan;
  at::ScalarType real = at::kFloat;
  std::optional<int64_t> memory_limit;  // bytes per rank, of its device's memory
  DeviceChoice device;                  // of each rank (choose_device.h); the CPU where nobody says
  uint64_t seed = 1;                    // of weights, data, shuffles and dropout
  LaunchOptions launch;

  const Graph& graph() const { return model.graph; }
  Numbers numbers() const { return {real, device.type}; }
};

/// Throws InvalidInput with the remedy for everything that does not fit together. `otherwise` is
/// the element type where the configuration names none.
Job resolve_job(const JobConfig& config, at::ScalarType otherwise = at::kFloat);

/// A job for a graph that has its losses. The plan is to be set, or stays one rank.
Job make_job(Graph graph);

}  // namespace tessera
