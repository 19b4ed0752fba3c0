#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/files/atomic_file.h"
#include "tessera/files/json.h"
#include "tessera/graph/number_type.h"
#include "tessera/job/choose_device.h"
#include "tessera/job/forecast.h"
#include "tessera/job/run.h"

namespace tessera::cli {
namespace bench_command {

struct Options {
  ConfigOptions config;
  bool json = false;
  int64_t iterations = 10;
  int64_t warmup = 2;
  bool update = false;
  bool baseline = false;
  std::string trace_file;
  std::string delay;  // empty: none
};

/// "200" or "200,1GB".
Delay parse_delay(const std::string& text) {
  constexpr double kMostMicroseconds = 1e9;
  const std::string latency = text.substr(0, text.find(','));
  double microseconds = -1;
  const auto [end, error] =
      std::from_chars(latency.data(), latency.data() + latency.size(), microseconds);
  if (error != std::errc() || end != latency.data() + latency.size() ||
      !(microseconds >= 0 && microseconds <= kMostMicroseconds))
    throw_error<InvalidInput>(
        "[--delay] \"{}\": give 0 to 1000000000 microseconds, and bytes a second where they count, "
        "such as 200 or 200,1GB",
        text);
  Delay delay{std::chrono::microseconds(std::llround(microseconds)), 0};
  if (latency.size() == text.size()) return delay;
  delay.bytes_per_second =
      static_cast<double>(parse_bytes(text.substr(latency.size() + 1), "--delay"));
  return delay;
}

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
      {"dtype", number_name(job.real)},
      {"plan", nlohmann::json::parse(to_json(job.plan))},
      {"median_ms", report.median_ms},
      {"p10_ms", report.p10_ms},
      {"p90_ms", report.p90_ms},
      {"peak_value_bytes", per_rank(report, [](const Rank& r) { return r.peak_value_bytes; })},
      {"arena_bytes", per_rank(report, [](const Rank& r) { return r.arena_bytes; })},
      {"reduction_bytes", per_rank(report, [](const Rank& r) { return r.reduction_bytes; })},
      {"scratch_bytes", per_rank(report, [](const Rank& r) { return r.scratch_bytes; })},
      {"parameter_bytes", per_rank(report, [](const Rank& r) { return r.parameter_bytes; })},
      {"workspace_bytes", per_rank(report, [](const Rank& r) { return r.workspace_bytes; })},
      {"peak_rss_bytes", per_rank(report, [](const Rank& r) { return r.peak_rss_bytes; })},
      {"bytes_sent", per_rank(report, [](const Rank& r) { return r.bytes_sent; })},
      {"messages", per_rank(report, [](const Rank& r) { return r.messages; })},
      {"blocked_ms", per_rank(report, [](const Rank& r) { return r.blocked_ms; })},
      {"devices", report.devices},
      {"cpus", report.cpus},
      {"loss", report.loss}};
  if (job.device.type != at::kCPU)
    json["device_bytes"] = per_rank(report, [](const Rank& r) { return r.device_bytes; });
  if (report.residual) json["multigrid_residual"] = *report.residual;
  if (report.gradient_residual) json["multigrid_gradient_residual"] = *report.gradient_residual;
  if (const std::optional<double> hidden = report.hidden_share()) {
    json["transfer_ms"] = per_rank(report, [](const Rank& r) { return r.transfer_ms; });
    json["exposed_ms"] = per_rank(report, [](const Rank& r) { return r.exposed_ms; });
    json["hidden_share"] = *hidden;
  }
  if (baseline.median_ms > 0) {
    json["one_rank_median_ms"] = baseline.median_ms;
    json["efficiency"] = baseline.efficiency;
  }
  print_out("{}\n", json_text(json));
}

/// What all workers have is said once.
std::string once(const std::vector<std::string>& of_ranks) {
  const bool alike = std::ranges::all_of(
      of_ranks, [&](const std::string& each) { return each == of_ranks.front(); });
  return alike ? of_ranks.front() : joined(of_ranks, " | ");
}

/// Where the workers compute, and how much memory that takes where it is not the machine's.
void print_devices(const BenchReport& report, const Job& job) {
  if (job.device.type != at::kCPU) {
    int64_t most = 0;
    for (const RankMeasurement& rank : report.per_rank) most = std::max(most, rank.device_bytes);
    print_out("on {}, of whose memory a step takes {}\n", once(report.devices), format_bytes(most));
  }
  print_out("{} CPUs {}\n", job.device.type == at::kCPU ? "on" : "driven by", once(report.cpus));
}

double mean_transfer_ms(const BenchReport& report) {
  double total = 0;
  for (const RankMeasurement& rank : report.per_rank) total += rank.transfer_ms;
  return total / static_cast<double>(report.per_rank.size());
}

void print_table(const BenchReport& report, const Job& job, const Options& options,
                 const Baseline& baseline) {
  print_out("{} on {} ({}), {}, {} each\n", job.model.name, counted(report.ranks, "worker"),
            to_string(job.plan), number_name(job.real), counted(job.launch.threads, "thread"));
  print_out("step {:.1f} ms (median of {}; p10 {:.1f}, p90 {:.1f})\n", report.median_ms,
            options.iterations, report.p10_ms, report.p90_ms);
  if (baseline.median_ms > 0)
    print_out("one worker {:.1f} ms: {:.2f} times as fast, efficiency {:.2f}\n", baseline.median_ms,
              baseline.median_ms / report.median_ms, baseline.efficiency);
  print_devices(report, job);
  if (report.residual)
    print_out("multigrid's residual {:.2e}{}\n", *report.residual,
              report.gradient_residual
                  ? fmt::format(", of the gradients {:.2e}", *report.gradient_residual)
                  : "");
  if (const std::optional<double> hidden = report.hidden_share())
    print_out("messages take {:.1f} ms a step (mean of the workers), {:.0f} % of it hidden\n",
              mean_transfer_ms(report), 100 * *hidden);
  print_out("peak resident set of rank 0's process {}\n\n",
            format_bytes(report.per_rank[0].peak_rss_bytes));
  print_out("{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}  {:>10}\n", "rank",
            "values", "arena", "scratch", "parameters", "workspace", "sent/step", "messages",
            "waiting");
  for (size_t rank = 0; rank < report.per_rank.size(); ++rank) {
    const RankMeasurement& r = report.per_rank[rank];
    print_out("{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}  {:>7.1f} ms\n", rank,
              format_bytes(r.peak_value_bytes), format_bytes(r.arena_bytes),
              format_bytes(r.scratch_bytes), format_bytes(r.parameter_bytes),
              format_bytes(r.workspace_bytes), format_bytes(r.bytes_sent), r.messages,
              r.blocked_ms);
  }
}

/// One worker with as many threads, after the others are done. As a thread of this process, also
/// where they were processes: a world of processes has all of them.
Baseline measure_baseline(const Job& job, const BenchOptions& bench, const BenchReport& report) {
  BenchOptions one = bench;
  one.device = device_of_rank(job, 0, 1);
  one.seed = job.seed;
  one.threads = job.launch.threads;
  one.timeout_seconds = job.launch.timeout_seconds;
  one.trace = {};
  one.delay = {};
  const double median_ms = benchmark(job.graph(), one).median_ms;
  return {median_ms, median_ms / (report.median_ms * report.ranks)};
}

int run(const Options& options) {
  BenchOptions bench;
  if (!options.delay.empty()) bench.delay = parse_delay(options.delay);
  const Job job = resolve_job(options.config.read());
  bench.real = job.real;
  bench.device = job.device;
  bench.warmup = options.warmup;
  bench.iterations = options.iterations;
  bench.update = options.update;
  if (!options.trace_file.empty()) bench.trace = TraceRecorder::Detail::kKernels;
  if (options.baseline)
    forecast_within_limits(job, Lowering(job.graph(), {}, timed_step(bench)), Where::kThisMachine);
  const BenchReport report = benchmark(job, bench);
  if (is_secondary_process()) return kOk;
  if (!options.trace_file.empty())
    write_file_atomically(options.trace_file, to_chrome_trace(report.trace, report.rank_names));
  const Baseline baseline = options.baseline ? measure_baseline(job, bench, report) : Baseline();
  if (options.json)
    print_json(report, job, baseline);
  else
    print_table(report, job, options, baseline);
  return kOk;
}

}  // namespace bench_command

void add_bench(CLI::App& app, int* exit_code) {
  using namespace bench_command;
  CLI::App* command = app.add_subcommand(
      "bench", "times steps (forward, loss, backward, reduction) and counts bytes and messages");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
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
      ->add_option(
          "--delay", options->delay,
          "pretend a network, and report which share of the time of its messages is hidden "
          "behind work: microseconds that every batch of messages takes, and bytes a "
          "second, such as 200 or 200,1GB")
      ->type_name("US[,BYTES]")
      ->group("Run");
  command
      ->add_option("--trace", options->trace_file,
                   "record one more step and write who did what when to this file, for "
                   "ui.perfetto.dev")
      ->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
