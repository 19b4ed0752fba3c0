#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tessera/base/standard_streams.h"
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

void report(const TrainOutcome& outcome, const Options& options) {
  const char* end = outcome.end == TrainEnd::kInterrupted    ? "interrupted"
                    : outcome.end == TrainEnd::kEarlyStopped ? "stopped early"
                                                             : "finished";
  if (options.json) {
    nlohmann::json json{{"end", end},
                        {"steps", outcome.steps},
                        {"loss", outcome.loss},
                        {"checkpoint", outcome.checkpoint}};
    if (outcome.validation) json["validation"] = {{"loss", outcome.validation->loss}};
    if (outcome.validation && outcome.validation->has_scores)
      json["validation"].update({{"accuracy", outcome.validation->scores.accuracy},
                                 {"mean_iou", outcome.validation->scores.mean_iou},
                                 {"dice", outcome.validation->scores.mean_dice}});
    print_out("{}\n", json_text(json));
    return;
  }
  if (outcome.resumed_at == outcome.steps)
    print_out("nothing left to do: the run has its {} steps\n", outcome.steps);
  else
    print_out("{} after {} steps, loss {:.6f}\n", end, outcome.steps, outcome.loss);
  if (outcome.validation) print_out("validation: {}\n", to_string(*outcome.validation));
  print_out("checkpoint {}\n", outcome.checkpoint);
}

int run(const Options& options) {
  const TrainConfig config = resolved(options.config.read());
  const Job job = resolve_training(config);
  std::signal(SIGINT, handle_stop);
  std::signal(SIGTERM, handle_stop);
  const TrainOutcome outcome = train(job, config);
  if (!is_secondary_process()) report(outcome, options);
  return kOk;
}

}  // namespace train_command

void add_train(CLI::App& app, int* exit_code) {
  using namespace train_command;
  CLI::App* command = app.add_subcommand(
      "train",
      "trains a model on a placement; a run folder keeps checkpoints, and starting the same "
      "command again resumes");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kTraining);
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Run");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
