#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/quantity.h"
#include "tessera/bench/benchmark.h"
#include "tessera/cli/command.h"
#include "tessera/cli/job_options.h"
#include "tessera/files/atomic_file.h"

namespace tessera::cli {
namespace bench_command {

struct Options {
  JobOptions job;
  int64_t iterations = 10;
  int64_t warmup = 2;
  bool update = false;
  bool baseline = false;
  std::string trace_file;
};

/// One field of all ranks, as a JSON list.
template <class Field>
nlohmann::json per_rank(const BenchReport& report, Field field) {
  nlohmann::json list = nlohmann::json::array();
  for (const RankMeasurement& rank : report.per_rank) list.push_back(field(rank));
  return list;
}

struct Baseline {
  double median_ms = 0;  // of one worker with as many threads as one of ours; 0: not measured
  double efficiency = 0;
};

void print_json(const BenchReport& report, const Job& job, const Baseline& baseline) {
  using Rank = RankMeasurement;
  nlohmann::json json{
      {"ranks", report.ranks},
      {"dtype", dtype_name(job.real)},
      {"plan", nlohmann::json::parse(to_json(job.plan))},
      {"median_ms", report.median_ms},
      {"p10_ms", report.p10_ms},
      {"p90_ms", report.p90_ms},
      {"peak_value_bytes", per_rank(report, [](const Rank& r) { return r.peak_value_bytes; })},
      {"parameter_bytes", per_rank(report, [](const Rank& r) { return r.parameter_bytes; })},
      {"workspace_bytes", per_rank(report, [](const Rank& r) { return r.workspace_bytes; })},
      {"peak_rss_bytes", per_rank(report, [](const Rank& r) { return r.peak_rss_bytes; })},
      {"bytes_sent", per_rank(report, [](const Rank& r) { return r.bytes_sent; })},
      {"messages", per_rank(report, [](const Rank& r) { return r.messages; })},
      {"blocked_ms", per_rank(report, [](const Rank& r) { return r.blocked_ms; })},
      {"loss", report.loss}};
  if (baseline.median_ms > 0) {
    json["one_rank_median_ms"] = baseline.median_ms;
    json["efficiency"] = baseline.efficiency;
  }
  fmt::print("{}\n", json.dump());
}

void print_table(const BenchReport& report, const Job& job, const Options& options,
                 const Baseline& baseline) {
  fmt::print("{} on {} workers ({}), {}, {} thread(s) each\n", options.job.source.model,
             report.ranks, to_string(job.plan), dtype_name(job.real), options.job.threads);
  fmt::print("step {:.1f} ms (median of {}; p10 {:.1f}, p90 {:.1f})\n", report.median_ms,
             options.iterations, report.p10_ms, report.p90_ms);
  if (baseline.median_ms > 0)
    fmt::print("one worker {:.1f} ms: {:.2f} times as fast, efficiency {:.2f}\n",
               baseline.median_ms, baseline.median_ms / report.median_ms, baseline.efficiency);
  fmt::print("peak resident set of rank 0's process {}\n\n",
             format_bytes(report.per_rank[0].peak_rss_bytes));
  fmt::print("{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}  {:>10}\n", "rank", "values",
             "parameters", "workspace", "sent/step", "messages", "waiting");
  for (size_t rank = 0; rank < report.per_rank.size(); ++rank) {
    const RankMeasurement& r = report.per_rank[rank];
    fmt::print("{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}  {:>7.1f} ms\n", rank,
               format_bytes(r.peak_value_bytes), format_bytes(r.parameter_bytes),
               format_bytes(r.workspace_bytes), format_bytes(r.bytes_sent), r.messages,
               r.blocked_ms);
  }
}

/// The baseline runs after the others are done, on a rank of its own.
void print(const BenchReport& report, const Job& job, const Options& options,
           const BenchOptions& bench) {
  Baseline baseline;
  if (options.baseline) {
    BenchOptions one = bench;
    one.plan = {};
    one.trace = {};
    baseline.median_ms = benchmark(job.graph(), one).median_ms;
    baseline.efficiency = baseline.median_ms / (report.median_ms * report.ranks);
  }
  if (options.job.json)
    print_json(report, job, baseline);
  else
    print_table(report, job, options, baseline);
}

int run(const Options& options) {
  const Job job = resolve(options.job);
  LowerOptions lowering;
  lowering.step = options.update ? StepKind::kTrain : StepKind::kGradient;
  const LaunchRequest request = launch_request(options.job, job);
  const int64_t copies = options.update ? 1 : 0;
  forecast_within_limits(job, lower(job.graph(), job.plan, lowering), copies,
                         where_ranks_live(request));
  if (options.baseline)
    forecast_within_limits(job, lower(job.graph(), {}, lowering), copies, Where::kThisMachine);
  BenchOptions bench;
  bench.plan = job.plan;
  bench.real = job.real;
  bench.warmup = options.warmup;
  bench.iterations = options.iterations;
  bench.seed = options.job.seed;
  bench.threads = options.job.threads;
  bench.update = options.update;
  bench.timeout_seconds = options.job.timeout_seconds;
  if (!options.trace_file.empty()) bench.trace = TraceRecorder::Detail::kKernels;
  return run_on_ranks(request, [&](Transport& transport) {
    const BenchReport report = benchmark(job.graph(), bench, transport);
    if (transport.rank() != 0) return;
    if (!options.trace_file.empty())
      write_file_atomically(options.trace_file, to_chrome_trace(report.trace, report.rank_names));
    print(report, job, options, bench);
  });
}

}  // namespace bench_command

void add_bench(CLI::App& app, int* exit_code) {
  using namespace bench_command;
  CLI::App* command = app.add_subcommand(
      "bench", "times steps (forward, loss, backward, reduction) and counts bytes and messages");
  auto options = std::make_shared<Options>();
  options->job.add_to(*command, "float32");
  command->add_option("--iterations", options->iterations, "timed steps")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000))
      ->group("Run");
  command->add_option("--warmup", options->warmup, "steps before timing")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000))
      ->group("Run");
  command->add_flag("--update", options->update, "time an SGD step too")->group("Run");
  command
      ->add_flag("--baseline", options->baseline,
                 "also time one worker, with as many threads as each has, for the efficiency")
      ->group("Run");
  command
      ->add_option("--trace", options->trace_file,
                   "record one more step and write who did what when to this file, for "
                   "ui.perfetto.dev")
      ->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
