#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/cli/command.h"
#include "tessera/cli/job_options.h"
#include "tessera/trial/verify.h"

namespace tessera::cli {
namespace {

struct Options {
  JobOptions job;
  int64_t steps = 2;
  std::string optimiser = "sgd";
};

/// JSON has no infinity; a NaN anywhere counts as one.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json("inf");
}

void print_json(const VerifyReport& report, const Job& job) {
  const nlohmann::json json{{"ranks", report.ranks},
                            {"dtype", dtype_name(job.real)},
                            {"plan", nlohmann::json::parse(to_json(job.plan))},
                            {"loss_rel", number(report.loss_rel)},
                            {"output_rel", number(report.output_rel)},
                            {"input_grad_rel", number(report.input_grad_rel)},
                            {"param_grad_rel", number(report.param_grad_rel)},
                            {"param_grad_l2", number(report.param_grad_l2)},
                            {"updated_param_rel", number(report.updated_param_rel)},
                            {"buffer_rel", number(report.buffer_rel)},
                            {"worst", report.worst},
                            {"ok", report.ok}};
  fmt::print("{}\n", json.dump());
}

void print_table(const VerifyReport& report, const Job& job, const Options& options) {
  fmt::print("{} on {} workers ({}) against one, {}, {} steps of {}\n", options.job.model,
             report.ranks, to_string(job.plan), dtype_name(job.real), options.steps,
             options.optimiser);
  const auto row = [](const char* what, double value) {
    fmt::print("  {:<22} {:.2e}\n", what, value);
  };
  row("loss", report.loss_rel);
  row("outputs", report.output_rel);
  row("input gradients", report.input_grad_rel);
  row("parameter gradients", report.param_grad_rel);
  row("  ... in L2", report.param_grad_l2);
  row("updated parameters", report.updated_param_rel);
  row("running statistics", report.buffer_rel);
  if (!report.worst.empty()) fmt::print("  largest difference: {}\n", report.worst);
  fmt::print("{}\n", report.ok ? "OK: the same numbers" : "FAILED: the numbers differ");
}

int run(const Options& options) {
  const Job job = resolve(options.job);
  LowerOptions lowering;
  lowering.step = StepKind::kTrain;
  lowering.input_gradients = lowering.keep_outputs = true;
  const bool adamw = options.optimiser == "adamw";
  const LaunchRequest request = launch_request(options.job, job);
  forecast_within_limits(job, lower(job.graph, job.plan, lowering), adamw ? 2 : 1,
                         where_ranks_live(request));
  VerifyOptions verification;
  verification.plan = job.plan;
  verification.real = job.real;
  verification.optimiser = adamw ? OptimiserKind::kAdamW : OptimiserKind::kSgd;
  verification.steps = options.steps;
  verification.seed = options.job.seed;
  verification.threads = options.job.threads;
  verification.timeout_seconds = options.job.timeout_seconds;
  bool ok = true;
  const int code = run_on_ranks(request, [&](Transport& transport) {
    const VerifyReport report = verify(job.graph, verification, transport);
    if (transport.rank() != 0) return;
    ok = report.ok;
    if (options.job.json)
      print_json(report, job);
    else
      print_table(report, job, options);
  });
  return ok ? code : kCheckFailed;
}

}  // namespace

void add_verify(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("verify", "proves that a placement gives the numbers of one worker");
  auto options = std::make_shared<Options>();
  options->job.add_to(*command, "float64");
  command->add_option("--steps", options->steps, "optimiser steps to compare")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000))
      ->group("Run");
  command->add_option("--optimiser", options->optimiser, "sgd (momentum 0.9) or adamw")
      ->capture_default_str()
      ->check(CLI::IsMember({"sgd", "adamw"}))
      ->group("Run");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
