#include "tessera/cli/job_options.h"

#include <unistd.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "tessera/base/error.h"
#include "tessera/cli/parse.h"
#include "tessera/planner/grid.h"

namespace tessera::cli {
namespace {

int64_t product(const std::vector<int64_t>& factors) {
  return std::accumulate(factors.begin(), factors.end(), int64_t{1}, std::multiplies<>());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_error<InvalidInput>("[plan] cannot read {}", path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Pieces as given: a grid such as 2x2, or a number that we spread over the axes.
std::vector<int64_t> resolve_pieces(const JobOptions& options, const Graph& graph,
                                    const Plan& plan) {
  const std::vector<int64_t> pieces = parse_sizes(options.pieces, "--pieces");
  return pieces.size() == 1 ? best_pieces(graph, plan, pieces[0]) : pieces;
}

Plan resolve_plan(const JobOptions& options, const Graph& graph) {
  Plan plan;
  if (!options.plan_file.empty()) return plan_from_json(read_file(options.plan_file));
  plan.data = options.data;
  if (options.data < 1) throw_error<InvalidInput>("[--data] {} must be at least 1", options.data);
  if (!options.space.empty()) plan.space = parse_sizes(options.space, "--space");
  if (options.workers != 0) {
    if (options.workers < 1)
      throw_error<InvalidInput>("[--workers] {} must be at least 1", options.workers);
    const int64_t given = options.data * product(plan.space);
    if (options.workers % options.data != 0 || (!plan.space.empty() && given != options.workers))
      throw_error<InvalidInput>(
          "[--workers] {} workers do not fit data {}{}; leave --workers out, or give --data a "
          "divisor of it and no --space",
          options.workers, options.data,
          plan.space.empty() ? "" : fmt::format(" x space {}", options.space));
    if (plan.space.empty()) plan.space = best_space(graph, plan, options.workers / options.data);
  }
  if (!options.pieces.empty()) plan.pieces = resolve_pieces(options, graph, plan);
  return plan;
}

int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    file.ignore(64, '\n');
  }
  return std::numeric_limits<int64_t>::max();
}

at::ScalarType parse_dtype(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "float64") return at::kDouble;
  throw_error<InvalidInput>("[--dtype] {} is not supported; use float32 or float64", name);
}

}  // namespace

void JobOptions::add_to(CLI::App& command, const std::string& default_dtype) {
  dtype = default_dtype;
  const auto group = [](CLI::Option* option, const char* name) { return option->group(name); };
  group(command
            .add_option("MODEL", source.model,
                        "zoo model with options: unet2d:base=16,classes=4; or a file of "
                        "torch.jit.script or torch.jit.trace: net.pt")
            ->required(),
        "Model");
  group(command.add_option("--loss", source.loss,
                           "terms joined by +: 0.5*bce+0.5*dice (default: cross_entropy, or bce "
                           "for one channel); see docs/models.md"),
        "Model");
  group(command.add_option("--output-weights", source.output_weights,
                           "factors of the losses of several outputs: 1,0.4"),
        "Model");
  group(command.add_option("--input", source.input,
                           "batch x channels x spatial sizes, in pixels: 1x3x512x512 (default: the "
                           "model's own)"),
        "Model");
  group(command.add_option("--data", data, "parts of the batch (replicas)")->capture_default_str(),
        "Placement");
  group(command.add_option("--space", space, "parts of the spatial axes: 2x2"), "Placement");
  group(command.add_option("--pieces", pieces,
                           "pieces of each worker's part: a number, or per axis as 2x2"),
        "Placement");
  group(
      command.add_option("--workers", workers,
                         "number of workers; the space grid with the least halo traffic is taken"),
      "Placement");
  group(command.add_option("--plan", plan_file, "JSON file with the placement"), "Placement")
      ->excludes("--data")
      ->excludes("--space")
      ->excludes("--pieces")
      ->excludes("--workers");
  group(command.add_option("--dtype", dtype, "float32 or float64")->capture_default_str(), "Run");
  group(command.add_option("--seed", seed, "of weights, data and dropout")->capture_default_str(),
        "Run");
  group(command.add_option("--threads", threads, "per worker")
            ->capture_default_str()
            ->check(CLI::Range(1, 1024)),
        "Run");
  group(command
            .add_option("--launch", launch,
                        "ranks as threads of this process, or as processes under mpirun: mpi")
            ->capture_default_str()
            ->check(CLI::IsMember({"threads", "mpi"})),
        "Run");
  group(command.add_option("--memory", memory, "limit per worker: 16GiB"), "Run");
  group(
      command.add_option("--timeout", timeout_seconds, "of a wait for another worker, in seconds")
          ->capture_default_str()
          ->check(CLI::PositiveNumber),
      "Run");
  group(command.add_flag("--json", json, "one JSON object on stdout"), "Output");
}

Job resolve(const JobOptions& options) {
  Job job;
  job.real = parse_dtype(options.dtype);
  job.model = load_model(options.source);
  job.plan = resolve_plan(options, job.graph());
  check_plan(job.plan, job.graph().type(job.graph().inputs()[0]));
  if (!options.memory.empty()) job.memory_limit = parse_bytes(options.memory, "--memory");
  return job;
}

Where where_ranks_live(const LaunchRequest& request) {
  return transport_name(request) == "threads" ? Where::kThisMachine : Where::kAnywhere;
}

std::vector<RankForecast> forecast_within_limits(const Job& job, const Lowered& lowered,
                                                 int64_t optimiser_copies, Where where) {
  std::vector<RankForecast> forecasts;
  int64_t all_ranks = 0;
  for (const Program& program : lowered.programs) {
    RankForecast forecast = simulate(program, lowered.graph, job.real);
    forecast.parameter_bytes += optimiser_copies * job.graph().num_trainable() *
                                static_cast<int64_t>(c10::elementSize(job.real));
    const int64_t needed = forecast.peak_value_bytes + forecast.parameter_bytes;
    if (job.memory_limit && needed > *job.memory_limit)
      throw_error<OutOfMemory>(
          "[--memory] rank {}/{}: needs {} (values {}, parameters {}), the limit is {}; use more "
          "workers, a smaller input or a smaller batch",
          program.rank, program.num_ranks, format_bytes(needed),
          format_bytes(forecast.peak_value_bytes), format_bytes(forecast.parameter_bytes),
          format_bytes(*job.memory_limit));
    all_ranks += needed;
    forecasts.push_back(forecast);
  }
  if (where == Where::kThisMachine && all_ranks > free_memory())
    throw_error<OutOfMemory>(
        "[memory] the {} workers need {} together, this machine has {} free; use a smaller input, "
        "or "
        "`tessera plan` to see what it would need",
        lowered.programs.size(), format_bytes(all_ranks), format_bytes(free_memory()));
  return forecasts;
}

LaunchRequest launch_request(const JobOptions& options, const Job& job) {
  return {options.launch, job.plan.num_ranks(), options.threads, options.timeout_seconds};
}

std::string dtype_name(at::ScalarType real) { return real == at::kDouble ? "float64" : "float32"; }

}  // namespace tessera::cli
