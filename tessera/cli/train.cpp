#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/files/json.h"
#include "tessera/job/run.h"

namespace tessera::cli {
namespace train_command {

struct Options {
  ConfigOptions config;
  bool json = false;
};

/// The first Ctrl-C asks for a checkpoint and an orderly end, the second one ends at once. So does
/// the first where no step has begun: there is nothing to save.
void handle_stop(int signal) {
  std::signal(signal, SIG_DFL);
  if (training_begun.load())
    stop_requested.store(true);
  else
    std::raise(signal);
}

/// What this start has come to; "complete" where an earlier one had done all that is asked for.
const char* name_of_end(const TrainOutcome& outcome) {
  if (outcome.end == TrainEnd::kInterrupted) return "interrupted";
  if (outcome.end == TrainEnd::kEarlyStopped) return "stopped early";
  return outcome.steps_run() == 0 ? "complete" : "finished";
}

void print_json(const TrainOutcome& outcome, bool with_losses) {
  nlohmann::json json = nlohmann::json::parse(to_json(static_cast<const RunResults&>(outcome)));
  json.update({{"end", name_of_end(outcome)},
               {"steps", outcome.steps},
               {"steps_run", outcome.steps_run()},
               {"run", outcome.folder},
               {"checkpoint", outcome.checkpoint}});
  if (with_losses) json["losses"] = outcome.losses;
  print_out("{}\n", json_text(json));
}

void print_text(const TrainOutcome& outcome) {
  const std::string loss =
      std::isnan(outcome.loss) ? "" : fmt::format(", loss {:.6f}", outcome.loss);
  const std::string steps = counted(outcome.steps, "step");
  if (outcome.steps_run() > 0)
    print_out("{} after {}{}\n", name_of_end(outcome), steps, loss);
  else if (outcome.end == TrainEnd::kEarlyStopped)
    print_out(
        "nothing to do: the run has stopped early, after {}{}; a larger --patience extends it\n",
        steps, loss);
  else
    print_out(
        "nothing to do: the run is complete with {}{}; more --epochs or --steps extend it, and "
        "another --run starts another one\n",
        steps, loss);
  if (outcome.validation) print_out("validation: {}\n", to_string(*outcome.validation));
  for (const auto& [name, result] : outcome.targets)
    print_out("validation of {}: {}\n", name, to_string(result));
  print_out("checkpoint {}\n", outcome.checkpoint);
}

int run(const Options& options) {
  TrainConfig config = resolved(options.config.read());
  const bool with_losses = config.print_loss;
  if (options.json) config.print_loss = false;  // they are in the object
  const Job job = resolve_training(config);
  std::signal(SIGINT, handle_stop);
  std::signal(SIGTERM, handle_stop);
  const TrainOutcome outcome = train(job, config);
  if (is_secondary_process()) return kOk;
  if (options.json)
    print_json(outcome, with_losses);
  else
    print_text(outcome);
  return kOk;
}

}  // namespace train_command

void add_train(CLI::App& app, int* exit_code) {
  using namespace train_command;
  CLI::App* command = app.add_subcommand(
      "train",
      "trains a model on a placement; a run folder keeps checkpoints, and starting the same "
      "command with the same --run again resumes");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kTraining);
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Run");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
