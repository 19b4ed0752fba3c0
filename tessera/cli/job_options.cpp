#include "tessera/cli/job_options.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/planner/balance.h"
#include "tessera/planner/grid.h"

namespace tessera::cli {
namespace {

int64_t product(const std::vector<int64_t>& factors) {
  return std::accumulate(factors.begin(), factors.end(), int64_t{1}, std::multiplies<>());
}

/// Pieces as given: a grid such as 2x2, or a number that we spread over the axes.
std::vector<int64_t> resolve_pieces(const JobOptions& options, const Graph& graph,
                                    const Plan& plan) {
  const std::vector<int64_t> pieces = parse_sizes(options.pieces, "--pieces");
  return pieces.size() == 1 ? best_pieces(graph, plan, pieces[0]) : pieces;
}

/// One grid for all stages, or one for each.
void resolve_stages(const JobOptions& options, Plan* plan) {
  std::vector<std::vector<int64_t>> grids;
  for (size_t begin = 0; begin < options.space.size();) {
    const size_t comma = std::min(options.space.find(',', begin), options.space.size());
    grids.push_back(parse_sizes(options.space.substr(begin, comma - begin), "--space"));
    begin = comma + 1;
  }
  if (options.space.ends_with(','))
    throw_error<InvalidInput>("[--space] {} ends with a comma; give a grid behind it",
                              options.space);
  if (grids.empty()) grids.emplace_back();
  if (grids.size() == 1) grids.resize(options.stages, grids[0]);
  if (static_cast<int64_t>(grids.size()) != options.stages)
    throw_error<InvalidInput>(
        "[--space] {} has {} grids for {} stages; give one for all of them, or one for each",
        options.space, grids.size(), options.stages);
  if (options.stages == 1)
    plan->space = grids[0];
  else
    plan->stages = grids;
}

/// Which node runs on which stage, where the plan does not say.
void resolve_balance(const JobOptions& options, const Graph& graph, at::ScalarType real,
                     Plan* plan) {
  if (plan->num_stages() == 1 || !plan->stage_of.empty()) return;
  const std::vector<std::string> names = balance_names();
  if (std::find(names.begin(), names.end(), options.balance) == names.end()) {
    if (access(options.balance.c_str(), R_OK) != 0)
      throw_error<InvalidInput>("[--balance] {} is no file that can be read; use {}, or a file",
                                options.balance, fmt::join(names, ", "));
    plan->stage_of =
        balance_from_json(graph, plan->num_stages(), read_text(options.balance, "--balance"));
    return;
  }
  BalanceOptions balancing;
  balancing.by = parse_balance(options.balance);
  balancing.real = real;
  balancing.chunks_per_stage = static_cast<int>(options.chunks_per_stage);
  plan->stage_of = balance(graph, *plan, balancing);
}

Plan resolve_plan(const JobOptions& options, const Graph& graph) {
  Plan plan;
  if (!options.plan_file.empty()) return plan_from_json(read_text(options.plan_file, "--plan"));
  plan.data = options.data;
  if (options.data < 1) throw_error<InvalidInput>("[--data] {} must be at least 1", options.data);
  if (options.stages < 1 || options.stages > 4096)
    throw_error<InvalidInput>("[--stages] {} must be 1 to 4096", options.stages);
  plan.micro_batches = options.micro_batches;
  plan.schedule = parse_schedule(options.schedule);
  resolve_stages(options, &plan);
  if (options.workers != 0 && options.stages > 1) {
    if (plan.num_ranks() != options.workers)
      throw_error<InvalidInput>(
          "[--workers] {} workers do not fit data {} and {} stages of {} workers in all; leave "
          "--workers out, and give --space for more workers a stage",
          options.workers, options.data, options.stages, plan.ranks_per_replica());
  } else if (options.workers != 0) {
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
  group(command.add_option("--stages", stages, "parts of the network, one behind the other")
            ->capture_default_str(),
        "Placement");
  group(command.add_option("--space", space,
                           "parts of the spatial axes: 2x2; or a grid for each stage: 2x2,1x2,1x1"),
        "Placement");
  group(command.add_option("--pieces", pieces,
                           "pieces of each worker's part: a number, or per axis as 2x2"),
        "Placement");
  group(
      command.add_option("--workers", workers,
                         "number of workers; the space grid with the least halo traffic is taken"),
      "Placement");
  group(command
            .add_option("--micro-batches", micro_batches,
                        "parts of the batch that follow each other through the stages")
            ->capture_default_str(),
        "Placement");
  group(command.add_option("--schedule", schedule, "in which order: see docs/pipeline.md")
            ->capture_default_str()
            ->check(CLI::IsMember(schedule_names())),
        "Placement");
  group(command
            .add_option("--chunks", chunks_per_stage,
                        "parts of the network on each stage, of the interleaved schedule")
            ->capture_default_str()
            ->check(CLI::Range(1, 1024)),
        "Placement");
  group(command
            .add_option("--balance", balance,
                        "what the stages are made equal in: layers, parameters, memory, time; or "
                        "a JSON file with a list of node names for each")
            ->capture_default_str(),
        "Placement");
  group(command
            .add_option("--norm", norm,
                        "batch norm by the statistics of the whole batch, or of each micro-batch")
            ->capture_default_str()
            ->check(CLI::IsMember({"batch", "micro-batch"})),
        "Placement");
  group(command.add_option("--plan", plan_file, "JSON file with the placement"), "Placement")
      ->excludes("--data")
      ->excludes("--stages")
      ->excludes("--micro-batches")
      ->excludes("--schedule")
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
  if (options.norm == "micro-batch")
    job.model.graph = with_micro_batch_norm(job.model.graph, job.plan.micro_batches);
  resolve_balance(options, job.graph(), job.real, &job.plan);
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
    for (ParameterId id : program.parameters)
      if (const Parameter& held = lowered.graph.parameters()[id];
          held.role == ParameterRole::kTrainable)
        forecast.parameter_bytes +=
            optimiser_copies * held.numel() * static_cast<int64_t>(c10::elementSize(job.real));
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
