#pragma once
// The options that commands share: the model, its input, the placement, numbers and limits; and
// what they resolve to.

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/job/launch.h"
#include "tessera/job/model_source.h"
#include "tessera/lower/lower.h"
#include "tessera/plan/plan.h"
#include "tessera/simulate/simulator.h"

namespace tessera::cli {

/// As the user typed them.
struct JobOptions {
  ModelSource source;
  int64_t data = 1;
  int64_t stages = 1;
  std::string space;  // one grid for all stages, or one for each: 2x2,1x2,1x1
  std::string pieces;
  int64_t micro_batches = 1;
  std::string schedule = "1f1b";
  int64_t chunks_per_stage = 2;  // of the interleaved schedule
  std::string balance = "time";  // or a file
  std::string norm = "batch";
  int64_t workers = 0;
  std::string plan_file;
  std::string dtype;
  uint64_t seed = 1;
  int threads = 1;
  std::string memory;
  double timeout_seconds = 600;
  std::string launch = "threads";
  bool json = false;

  /// Adds them to a command, in groups. `default_dtype` is float32 or float64.
  void add_to(CLI::App& command, const std::string& default_dtype);
};

/// What they mean.
struct Job {
  LoadedModel model;  // with batch norm by micro-batches where that is asked for
  Plan plan;
  at::ScalarType real = at::kFloat;
  std::optional<int64_t> memory_limit;  // bytes per rank

  const Graph& graph() const { return model.graph; }
};

/// Throws InvalidInput with the remedy for everything that does not fit together.
Job resolve(const JobOptions& options);

/// Forecasts every rank and throws OutOfMemory, before anything is allocated, where a rank needs
/// more than the limit, or (where all ranks live here) all ranks together need more than is free.
enum class Where { kAnywhere, kThisMachine };
std::vector<RankForecast> forecast_within_limits(const Job& job, const Lowered& lowered,
                                                 int64_t optimiser_copies, Where where);

/// Ranks that are threads are all here; processes may be anywhere, and must decide alike.
Where where_ranks_live(const LaunchRequest& request);

std::string dtype_name(at::ScalarType real);

LaunchRequest launch_request(const JobOptions& options, const Job& job);

}  // namespace tessera::cli
