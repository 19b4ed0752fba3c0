#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/cli/grid_picture.h"
#include "tessera/cli/stage_picture.h"
#include "tessera/files/atomic_file.h"
#include "tessera/files/json.h"
#include "tessera/graph/number_type.h"
#include "tessera/job/forecast.h"
#include "tessera/lower/cost_model.h"
#include "tessera/lower/halo_report.h"
#include "tessera/lower/multigrid.h"
#include "tessera/report/task_events.h"
#include "tessera/simulate/draw_timeline.h"
#include "tessera/simulate/timeline_trace.h"

namespace tessera::cli {
namespace plan_command {

struct Options {
  ConfigOptions config;
  bool json = false;
  bool update = false;
  bool program = false;
  int rank = 0;
  bool timeline = false;
  std::string costs = "flops";
  double message_microseconds = 0;
  double message_gigabytes_per_second = 0;  // 0: any number of bytes takes no time
  int width = 100;
  std::string trace_file;
  std::string plan_file;
};

template <class Field>
nlohmann::json per_rank(const std::vector<RankForecast>& ranks, Field field) {
  nlohmann::json list = nlohmann::json::array();
  for (const RankForecast& rank : ranks) list.push_back(field(rank));
  return list;
}

void print_json(const Job& job, const Forecast& forecast) {
  using Rank = RankForecast;
  const std::vector<Rank>& ranks = forecast.ranks;
  const nlohmann::json json{
      {"ranks", ranks.size()},
      {"dtype", number_name(job.real)},
      {"device", job.device.type == at::kCPU ? "cpu" : "cuda"},
      {"plan", nlohmann::json::parse(to_json(job.plan))},
      {"peak_value_bytes", per_rank(ranks, [](const Rank& r) { return r.peak_value_bytes; })},
      {"arena_bytes", per_rank(ranks, [](const Rank& r) { return r.arena_bytes; })},
      {"reduction_bytes", per_rank(ranks, [](const Rank& r) { return r.reduction_bytes; })},
      {"scratch_bytes", per_rank(ranks, [](const Rank& r) { return r.scratch_bytes; })},
      {"parameter_bytes", per_rank(ranks, [](const Rank& r) { return r.parameter_bytes; })},
      {"bytes_sent", per_rank(ranks, [](const Rank& r) { return r.bytes_sent; })},
      {"messages", per_rank(ranks, [](const Rank& r) { return r.messages; })}};
  print_out("{}\n", json_text(json));
}

void print_halos(const Job& job) {
  constexpr size_t kMaxRows = 12;
  std::vector<HaloInfo> halos = halo_report(job.graph(), job.plan);
  std::erase_if(halos, [](const HaloInfo& halo) {  // between stages alone, or to another layout
    return std::all_of(halo.widths.begin(), halo.widths.end(),
                       [](const auto& width) { return width.first == 0 && width.second == 0; });
  });
  if (halos.empty()) return;
  print_out(
      "\nhalos (░), in pixels before and after a part, and what crosses in one forward pass\n");
  for (size_t i = 0; i < std::min(halos.size(), kMaxRows); ++i) {
    std::string widths;
    for (const auto& [low, high] : halos[i].widths)
      widths += fmt::format("{}-{}/+{}", widths.empty() ? "" : "  ", low, high);
    print_out("  {:<28} {:<24} {:>12}\n", halos[i].value, widths,
              format_bytes(halos[i].elements * static_cast<int64_t>(c10::elementSize(job.real))));
  }
  if (halos.size() > kMaxRows) print_out("  ... and {} more\n", halos.size() - kMaxRows);
}

void print_stages(const Job& job) {
  const Colours colours = isatty(STDOUT_FILENO) ? Colours::kTerminal : Colours::kNone;
  print_out("nodes in the order in which they run, by resolution; each with its stage\n{}\n{}",
            draw_stages(job.graph(), job.plan, colours) + describe_domains(job.graph(), job.plan),
            describe_crossings(job.graph(), job.plan, job.real));
}

/// "17", or of a large world "196 like 17".
std::string name_of(const std::vector<int>& alike) {
  if (alike.size() == 1) return fmt::format("{}", alike.front());
  return fmt::format("{} like {}", alike.size(), alike.front());
}

void print_table(const Job& job, const Forecast& forecast) {
  const ValueType& input = job.graph().type(job.graph().inputs()[0]);
  print_out("{} on {} ({}), input {}, {}\n\n", job.model.name,
            counted(std::ssize(forecast.ranks), "worker"), to_string(job.plan), to_string(input),
            number_name(job.real));
  if (job.plan.num_stages() > 1)
    print_stages(job);
  else if (job.plan.num_ranks() <= kMostRanksProved)
    print_out("{}", draw_grid(input_layout(job.graph(), job.plan), job.plan));
  if (job.plan.multigrid && job.plan.multigrid->levels > 1)
    print_out("\n{}", draw_multigrid(job.graph(), *job.plan.multigrid, job.plan.num_stages()));
  print_halos(job);
  size_t width = 4;
  for (const std::vector<int>& alike : forecast.classes)
    width = std::max(width, name_of(alike).size());
  print_out("\n{:>{}}  {:>5}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}\n", "rank",
            width, "stage", "values", "arena", "scratch", "parameters", "together", "sent/step",
            "messages");
  for (const std::vector<int>& alike : forecast.classes) {
    RankForecast r = forecast.ranks[alike.front()];
    for (int rank : alike) {  // reductions differ by a few messages
      r.bytes_sent = std::max(r.bytes_sent, forecast.ranks[rank].bytes_sent);
      r.messages = std::max(r.messages, forecast.ranks[rank].messages);
    }
    print_out(
        "{:>{}}  {:>5}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}\n", name_of(alike),
        width, job.plan.stage_of_rank(alike.front()), format_bytes(r.peak_value_bytes),
        format_bytes(r.arena_bytes), format_bytes(r.scratch_bytes), format_bytes(r.parameter_bytes),
        format_bytes(r.arena_bytes + r.parameter_bytes), format_bytes(r.bytes_sent), r.messages);
  }
  print_out(
      "\nvalues lie in the arena, scratch of kernels among them; what libraries take inside "
      "kernels "
      "comes on top, and `tessera bench` measures it\n");
}

constexpr int kMostRanksDrawn = 1024;

std::unique_ptr<CostModel> costs_of(const Options& options, at::ScalarType real) {
  if (parse_schedule_costs(options.costs) == ScheduleCosts::kTasks)
    return std::make_unique<UnitCosts>(real);
  RooflineRates rates;
  rates.message_latency_seconds = options.message_microseconds * 1e-6;
  if (options.message_gigabytes_per_second > 0)
    rates.message_bytes_per_second = options.message_gigabytes_per_second * 1e9;
  return std::make_unique<Roofline>(rates, real);
}

/// All ranks are walked together: their programs take some seconds where there are many.
void show_timeline(const Job& job, const Lowering& lowering, const Options& options) {
  if (lowering.num_ranks() > kMostRanksDrawn)
    throw_error<InvalidInput>("[{}] {} workers are too many to draw; use at most {}",
                              options.timeline ? "--timeline" : "--trace", lowering.num_ranks(),
                              kMostRanksDrawn);
  const std::unique_ptr<CostModel> costs = costs_of(options, job.real);
  const Timeline timeline = make_timeline(lowering.programs(), lowering.graph(), *costs);
  if (!options.trace_file.empty())
    write_file_atomically(options.trace_file,
                          to_chrome_trace(to_trace(timeline), rank_names(job.plan)));
  if (options.timeline) print_out("{}", draw_timeline(timeline, options.width));
}

int run(const Options& options) {
  const Job job = resolve_job(options.config.read());
  LowerOptions lowered;
  lowered.step = options.update ? StepKind::kTrain : StepKind::kGradient;
  if (options.update) lowered.optimiser.copies = 1;
  lowered.real = job.real;
  lowered.device = job.device.type;
  const Lowering lowering(job.graph(), job.plan, lowered);
  if (!options.plan_file.empty()) write_file_atomically(options.plan_file, to_json(job.plan));
  if (options.program) {
    if (options.rank >= job.plan.num_ranks())
      throw_error<InvalidInput>("[--rank] {} is not a rank of {}; use 0 to {}", options.rank,
                                counted(job.plan.num_ranks(), "worker"), job.plan.num_ranks() - 1);
    print_out("{}", to_string(lowering.program(options.rank), lowering.graph()));
    return kOk;
  }
  if (options.timeline || !options.trace_file.empty()) show_timeline(job, lowering, options);
  if (options.timeline) return kOk;
  const Forecast forecast = forecast_within_limits(job, lowering, Where::kAnywhere);
  if (options.json)
    print_json(job, forecast);
  else
    print_table(job, forecast);
  return kOk;
}

}  // namespace plan_command

void add_plan(CLI::App& app, int* exit_code) {
  using namespace plan_command;
  CLI::App* command =
      app.add_subcommand("plan", "what a placement needs of each worker, without running it");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->add_flag("--update", options->update, "count SGD's momentum too")->group("Run");
  command->add_flag("--program", options->program, "print one rank's program instead")
      ->excludes("--json")
      ->group("Output");
  command->add_option("--rank", options->rank, "whose program")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command
      ->add_flag("--timeline", options->timeline,
                 "draw when each worker does what instead, one line each")
      ->excludes("--json")
      ->group("Output");
  command
      ->add_option("--costs", options->costs,
                   "of the timeline: flops (kernels at 10 GFLOP/s and 5 GB/s of memory, whichever "
                   "takes longer), or tasks (a forward 1, a backward 2)")
      ->capture_default_str()
      ->check(CLI::IsMember(schedule_costs_names()))
      ->group("Output");
  command
      ->add_option("--message-latency", options->message_microseconds,
                   "of the timeline by flops: microseconds that a message takes")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command
      ->add_option("--message-rate", options->message_gigabytes_per_second,
                   "of the timeline by flops: GB/s that a message moves (0: bytes take no time)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command->add_option("--width", options->width, "columns of the timeline")
      ->capture_default_str()
      ->check(CLI::Range(10, 10000))
      ->group("Output");
  command
      ->add_option("--trace", options->trace_file,
                   "write the timeline to this file, for ui.perfetto.dev")
      ->group("Output");
  command
      ->add_option("--write-plan", options->plan_file,
                   "write the placement to this file, which --plan reads")
      ->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
