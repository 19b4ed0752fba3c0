#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/cli/command.h"
#include "tessera/cli/grid_picture.h"
#include "tessera/cli/job_options.h"
#include "tessera/cli/parse.h"
#include "tessera/lower/halo_report.h"

namespace tessera::cli {
namespace {

struct Options {
  JobOptions job;
  bool update = false;
  bool program = false;
  int rank = 0;
};

template <class Field>
nlohmann::json per_rank(const std::vector<RankForecast>& ranks, Field field) {
  nlohmann::json list = nlohmann::json::array();
  for (const RankForecast& rank : ranks) list.push_back(field(rank));
  return list;
}

void print_json(const Job& job, const std::vector<RankForecast>& ranks) {
  using Rank = RankForecast;
  const nlohmann::json json{
      {"ranks", ranks.size()},
      {"dtype", dtype_name(job.real)},
      {"plan", nlohmann::json::parse(to_json(job.plan))},
      {"peak_value_bytes", per_rank(ranks, [](const Rank& r) { return r.peak_value_bytes; })},
      {"parameter_bytes", per_rank(ranks, [](const Rank& r) { return r.parameter_bytes; })},
      {"bytes_sent", per_rank(ranks, [](const Rank& r) { return r.bytes_sent; })},
      {"messages", per_rank(ranks, [](const Rank& r) { return r.messages; })}};
  fmt::print("{}\n", json.dump());
}

void print_halos(const Job& job) {
  constexpr size_t kMaxRows = 12;
  const std::vector<HaloInfo> halos = halo_report(job.graph(), job.plan);
  if (halos.empty()) return;
  fmt::print(
      "\nhalos (░), in pixels before and after a part, and what crosses in one forward pass\n");
  for (size_t i = 0; i < std::min(halos.size(), kMaxRows); ++i) {
    std::string widths;
    for (const auto& [low, high] : halos[i].widths)
      widths += fmt::format("{}-{}/+{}", widths.empty() ? "" : "  ", low, high);
    fmt::print("  {:<28} {:<24} {:>12}\n", halos[i].value, widths,
               format_bytes(halos[i].elements * static_cast<int64_t>(c10::elementSize(job.real))));
  }
  if (halos.size() > kMaxRows) fmt::print("  ... and {} more\n", halos.size() - kMaxRows);
}

void print_table(const Job& job, const std::vector<RankForecast>& ranks, const Options& options) {
  const ValueType& input = job.graph().type(job.graph().inputs()[0]);
  fmt::print("{} on {} workers ({}), input {}, {}\n\n", options.job.source.model, ranks.size(),
             to_string(job.plan), to_string(input), dtype_name(job.real));
  fmt::print("{}", draw_grid(input_layout(job.graph(), job.plan), job.plan));
  print_halos(job);
  fmt::print("\n{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}\n", "rank", "values", "parameters",
             "together", "sent/step", "messages");
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankForecast& r = ranks[rank];
    fmt::print("{:>4}  {:>12}  {:>12}  {:>12}  {:>12}  {:>8}\n", rank,
               format_bytes(r.peak_value_bytes), format_bytes(r.parameter_bytes),
               format_bytes(r.peak_value_bytes + r.parameter_bytes), format_bytes(r.bytes_sent),
               r.messages);
  }
  fmt::print("\nworkspace inside kernels comes on top; `tessera bench` measures it\n");
}

int run(const Options& options) {
  const Job job = resolve(options.job);
  LowerOptions lowering;
  lowering.step = options.update ? StepKind::kTrain : StepKind::kGradient;
  const Lowered lowered = lower(job.graph(), job.plan, lowering);
  if (options.program) {
    if (options.rank >= job.plan.num_ranks())
      throw_error<InvalidInput>("[--rank] {} is not below {} ranks", options.rank,
                                job.plan.num_ranks());
    fmt::print("{}", to_string(lowered.programs[options.rank], lowered.graph));
    return kOk;
  }
  const std::vector<RankForecast> ranks =
      forecast_within_limits(job, lowered, options.update ? 1 : 0, Where::kAnywhere);
  if (options.job.json)
    print_json(job, ranks);
  else
    print_table(job, ranks, options);
  return kOk;
}

}  // namespace

void add_plan(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("plan", "what a placement needs of each worker, without running it");
  auto options = std::make_shared<Options>();
  options->job.add_to(*command, "float32");
  command->add_flag("--update", options->update, "count SGD's momentum too")->group("Run");
  command->add_flag("--program", options->program, "print one rank's program instead")
      ->excludes("--json")
      ->group("Output");
  command->add_option("--rank", options->rank, "whose program")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
