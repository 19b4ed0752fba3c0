#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/data/array_reader.h"
#include "tessera/files/json.h"
#include "tessera/graph/number_type.h"
#include "tessera/job/run.h"

namespace tessera::cli {
namespace verify_command {

struct Options {
  ConfigOptions config;
  bool json = false;
  int64_t steps = 2;
  std::string optimiser = "sgd";
  std::optional<double> learning_rate;
  double momentum = 0.9;
  std::string image_file;
  std::string target_files;
  bool print_loss = false;
  std::string gradient_file;
  std::string weight_file;
};

std::string input_names(const Graph& graph) {
  std::string names;
  for (size_t i = 1; i < graph.inputs().size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    names += fmt::format("{}{} {}", i > 1 ? ", " : "", value.name, to_string(value.type));
  }
  return names;
}

/// JSON has no infinity; a NaN anywhere counts as one.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json("inf");
}

/// "fixed limits", or "conditioning" where the network's own was needed.
const char* judged_by(const VerifyReport& report) {
  const auto& steps = report.sensitivities;
  const bool any = std::any_of(steps.begin(), steps.end(),
                               [](const Sensitivity& step) { return step.raises_limits; });
  return any ? "conditioning" : "fixed limits";
}

nlohmann::json json_of(const Sensitivity& sensitivity) {
  return {{"loss", number(sensitivity.loss)},
          {"output", number(sensitivity.output)},
          {"input_grad", number(sensitivity.input_gradient)},
          {"param_grad", number(sensitivity.gradient)},
          {"updated_param", number(sensitivity.updated)},
          {"buffer", number(sensitivity.buffer)},
          {"most", sensitivity.most},
          {"raises_limits", sensitivity.raises_limits}};
}

/// By which limits the numbers were judged.
nlohmann::json judgement(const VerifyReport& report) {
  nlohmann::json json{{"limit", report.limit},
                      {"by", judged_by(report)},
                      {"failure", report.failure},
                      {"undecided", report.undecided}};
  json["one_rounding"] =
      nlohmann::json::array();  // what it moves, step by step; empty: not measured
  for (const Sensitivity& step : report.sensitivities)
    json["one_rounding"].push_back(json_of(step));
  return json;
}

void print_json(const VerifyReport& report, const Job& job) {
  nlohmann::json json{{"ranks", report.ranks},
                      {"dtype", number_name(job.real)},
                      {"device", report.device},
                      {"plan", nlohmann::json::parse(to_json(job.plan))},
                      {"loss_rel", number(report.loss_rel)},
                      {"output_rel", number(report.output_rel)},
                      {"input_grad_rel", number(report.input_grad_rel)},
                      {"param_grad_rel", number(report.param_grad_rel)},
                      {"param_grad_l2", number(report.param_grad_l2)},
                      {"updated_param_rel", number(report.updated_param_rel)},
                      {"buffer_rel", number(report.buffer_rel)},
                      {"losses", report.losses},
                      {"worst", report.worst},
                      {"judgement", judgement(report)},
                      {"ok", report.ok}};
  if (report.solve_error)
    json["multigrid_error"] = {{"loss", number(report.solve_error->loss)},
                               {"output", number(report.solve_error->output)},
                               {"gradient", number(report.solve_error->gradient)}};
  if (report.residual) json["multigrid_residual"] = number(*report.residual);
  if (report.gradient_residual)
    json["multigrid_gradient_residual"] = number(*report.gradient_residual);
  print_out("{}\n", json_text(json));
}

/// What was measured, and which steps were judged by it.
void print_conditioning(const VerifyReport& report) {
  if (report.sensitivities.empty()) return;
  print_out(
      "  beyond the limit of {:.0e}; so autograd ran again with every number rounded once more:\n",
      report.limit);
  for (size_t step = 0; step < report.sensitivities.size(); ++step) {
    const Sensitivity& rounding = report.sensitivities[step];
    print_out("    step {}: that moves {} by {:.2e}; {}\n", step, rounding.most, rounding.largest,
              rounding.raises_limits ? "judged against what it moves" : "judged by the limit");
  }
}

/// What multigrid leaves, which both sides have.
void print_solve_error(const VerifyReport& report) {
  if (!report.solve_error) return;
  const auto [loss, output, gradient] = *report.solve_error;
  print_out(
      "  approximate: multigrid on one worker differs from the network, layer after layer, by\n"
      "    {:.2e} in the loss, {:.2e} in the outputs, {:.2e} in the gradients (L2, first step)\n",
      loss, output, gradient);
  if (report.residual)
    print_out("    the states at the intervals' ends jump by {:.2e} (residual)\n",
              *report.residual);
  if (report.gradient_residual)
    print_out("    their gradients jump by {:.2e}\n", *report.gradient_residual);
}

const char* verdict(const VerifyReport& report, at::ScalarType real) {
  if (report.undecided)
    return "UNDECIDED: rounding alone moves these numbers so far that an error would be hidden; "
           "use "
           "fewer steps, or a larger batch or input";
  if (!report.ok) return "FAILED: the numbers differ";
  if (is_narrow(real)) return "OK: as near to float32 as values of type bf16 can be";
  return report.sensitivities.empty() ? "OK: the same numbers"
                                      : "OK: the same numbers, but for rounding, which grows in "
                                        "this network";
}

void print_table(const VerifyReport& report, const Job& job, const Options& options) {
  print_out("{} on {} ({}) against one{}, {}, {} of {}\n", job.model.name,
            counted(report.ranks, "worker"), to_string(job.plan),
            is_narrow(job.real) ? " in float32" : "", number_name(job.real),
            counted(options.steps, "step"), options.optimiser);
  if (job.device.type != at::kCPU)
    print_out("  on {}, against autograd on the CPU\n", report.device);
  const auto row = [](const char* what, double value) {
    print_out("  {:<22} {:.2e}\n", what, value);
  };
  row("loss", report.loss_rel);
  row("outputs", report.output_rel);
  row("input gradients", report.input_grad_rel);
  row("parameter gradients", report.param_grad_rel);
  row("  ... in L2", report.param_grad_l2);
  row("updated parameters", report.updated_param_rel);
  row("running statistics", report.buffer_rel);
  if (options.print_loss)
    for (size_t step = 0; step < report.losses.size(); ++step)
      print_out("  step {} loss {:.17g}\n", step, report.losses[step]);
  if (!report.worst.empty()) print_out("  largest difference: {}\n", report.worst);
  print_solve_error(report);
  print_conditioning(report);
  if (!report.ok) print_out("  beyond its limit: {}\n", report.failure);
  print_out("{}\n", verdict(report, job.real));
}

/// The batch of the user's files, in the order of the graph's inputs.
std::vector<at::Tensor> read_inputs(const Options& options, const Job& job) {
  if (options.image_file.empty()) return {};
  std::vector<std::string> files{options.image_file};
  std::stringstream targets(options.target_files);
  for (std::string file; std::getline(targets, file, ',');) files.push_back(file);
  const std::vector<ValueId>& inputs = job.graph().inputs();
  if (files.size() != inputs.size())
    throw_error<InvalidInput>("[--target-npy] {}; this model and loss take {}: {}",
                              counted(std::ssize(files) - 1, "file"), inputs.size() - 1,
                              input_names(job.graph()));
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < files.size(); ++i) {
    const ValueType& type = job.graph().type(inputs[i]);
    const ArrayReader array(files[i]);
    const Shape& held = array.shape();
    Shape squeezed = type.shape();  // one channel may be left out, as images leave it out
    if (type.element == Element::kReal && type.num_axes() > 1 && squeezed[1] == 1)
      squeezed.erase(squeezed.begin() + 1);
    if (held != type.shape() && held != squeezed)
      throw_error<InvalidInput>("[{}] holds {}, the model's {} is {}", files[i], to_string(held),
                                job.graph().value(inputs[i]).name, to_string(type.shape()));
    tensors.push_back(
        at::empty(type.shape(), type.element == Element::kIndex ? at::kLong : wide(job.real)));
    array.read(Box::whole(held), tensors.back().view(held));
  }
  return tensors;
}

VerifyOptions verify_options(const Options& options, const Job& job) {
  VerifyOptions verification;
  if (options.optimiser == "adamw") verification.optimiser = OptimiserKind::kAdamW;
  verification.learning_rate = options.learning_rate;
  verification.momentum = options.momentum;
  verification.inputs = read_inputs(options, job);
  verification.steps = options.steps;
  verification.keep_gradients = !options.gradient_file.empty();
  verification.keep_parameters = !options.weight_file.empty();
  return verification;
}

int run(const Options& options) {
  if (options.image_file.empty() != options.target_files.empty())
    throw_error<InvalidInput>("[--input-npy] and --target-npy go together; give both or neither");
  JobConfig config = options.config.read();
  if (config.input.empty() && !options.image_file.empty())  // the file's shape stands for it
    config.input = to_string(ArrayReader(options.image_file).shape());
  const Job job = resolve_job(config, at::kDouble);
  check_weights_path(options.weight_file, job.model);
  const VerifyReport report = verify(job, verify_options(options, job));
  if (is_secondary_process()) return kOk;
  if (!options.gradient_file.empty())
    save_gradients(options.gradient_file, job.graph(), report.gradients);
  if (!options.weight_file.empty())
    save_model_weights(options.weight_file, job.model, report.parameters, options.steps);
  if (options.json)
    print_json(report, job);
  else
    print_table(report, job, options);
  return report.ok ? kOk : kCheckFailed;
}

}  // namespace verify_command

void add_verify(CLI::App& app, int* exit_code) {
  using namespace verify_command;
  CLI::App* command =
      app.add_subcommand("verify", "proves that a placement gives the numbers of one worker");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->add_option("--steps", options->steps, "optimiser steps to compare")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000))
      ->group("Run");
  command->add_option("--optimiser,--optimizer", options->optimiser, "sgd (momentum 0.9) or adamw")
      ->capture_default_str()
      ->check(CLI::IsMember({"sgd", "adamw"}))
      ->group("Run");
  command
      ->add_option("--learning-rate,--lr", options->learning_rate,
                   "of the optimiser (default: 0.01 for sgd, 0.001 for adamw)")
      ->group("Run");
  command->add_option("--momentum", options->momentum, "of sgd")
      ->capture_default_str()
      ->group("Run");
  command
      ->add_option("--input-npy", options->image_file,
                   "batch of images instead of noise, in every step; its shape is the --input")
      ->group("Comparison from outside");
  command
      ->add_option("--target-npy", options->target_files,
                   "its targets, one file for each target of the losses: t.npy,t2.npy")
      ->group("Comparison from outside");
  command
      ->add_flag("--print-loss", options->print_loss,
                 "the placement's loss of every step, with 17 digits")
      ->group("Comparison from outside");
  command
      ->add_option("--dump-gradients", options->gradient_file,
                   "safetensors file for the placement's gradients of the first step")
      ->group("Comparison from outside");
  command
      ->add_option("--save-weights", options->weight_file,
                   "file for the placement's weights after the last step: .safetensors, or .pt "
                   "for the whole model, as torch.jit.load takes it")
      ->group("Comparison from outside");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
