#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/cli/command.h"
#include "tessera/cli/job_options.h"
#include "tessera/config/config_layer.h"
#include "tessera/data/dataset.h"
#include "tessera/import/import.h"
#include "tessera/job/launch.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/train/configured.h"
#include "tessera/train/trainer.h"
#include "tessera/zoo/zoo.h"

namespace tessera::cli {
namespace train_command {

struct Options {
  std::string config_file;
  std::vector<std::pair<std::string, std::string>> given;  // option, text
  std::string memory;
  bool json = false;
};

/// The file first, then what the command line says.
TrainConfig read_config(const Options& options) {
  TrainConfig config;
  if (!options.config_file.empty()) apply_layer(config, read_config_file(options.config_file));
  ConfigLayer command_line;
  for (const auto& [option, text] : options.given)
    command_line.push_back(config_option(option, text));
  apply_layer(config, command_line);
  return resolved(config);
}

/// The input with the batch that --batch gives.
std::string input_of(const TrainConfig& config) {
  if (config.batch == 0 || (config.input.empty() && names_a_file(config.model)))
    return config.input;
  std::vector<int64_t> sizes = config.input.empty() ? find_model(config.model).default_input
                                                    : parse_sizes(config.input, "--input");
  sizes[0] = config.batch;
  return to_string(sizes);
}

/// Data sets write one label for pixels that do not count, and so does the filling of the last
/// validation batch.
void check_ignored_label(const std::string& loss) {
  if (loss.empty()) return;
  for (const LossTerm& term : parse_loss(loss).terms)
    std::visit(
        [&](const auto& options) {
          if constexpr (requires { options.ignore_index; })
            if (options.ignore_index != kIgnoreLabel)
              throw_error<InvalidInput>(
                  "[--loss] {} ignores the label {}; in training the data says what to ignore: "
                  "--data npy:images.npy,targets.npy,ignore={}",
                  term.name, options.ignore_index, options.ignore_index);
        },
        term.options);
}

JobOptions job_options(const TrainConfig& config, const std::string& memory) {
  JobOptions job;
  job.source = {config.model, input_of(config), config.loss, config.output_weights};
  job.data = config.replicas;
  job.stages = config.stages;
  job.space = config.space;
  job.pieces = config.pieces;
  job.micro_batches = config.micro_batches;
  job.schedule = config.pipeline_schedule;
  job.chunks_per_stage = config.chunks;
  job.balance = config.balance;
  job.norm = config.norm;
  job.workers = config.workers;
  job.plan_file = config.plan;
  job.dtype = config.dtype;
  job.seed = config.seed;
  job.memory = memory;
  return job;
}

/// The first Ctrl-C asks for a checkpoint and an orderly end, the second one ends at once.
void handle_stop(int signal) {
  stop_requested.store(true);
  std::signal(signal, SIG_DFL);
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
    fmt::print("{}\n", json.dump());
    return;
  }
  if (outcome.resumed_at == outcome.steps)
    fmt::print("nothing left to do: the run has its {} steps\n", outcome.steps);
  else
    fmt::print("{} after {} steps, loss {:.6f}\n", end, outcome.steps, outcome.loss);
  if (outcome.validation) fmt::print("validation: {}\n", to_string(*outcome.validation));
  fmt::print("checkpoint {}\n", outcome.checkpoint);
}

int run(const Options& options) {
  const TrainConfig config = read_config(options);
  check_ignored_label(config.loss);
  const Job job = resolve(job_options(config, options.memory));
  const LaunchRequest request{config.launch, job.plan.num_ranks(), static_cast<int>(config.threads),
                              config.timeout_seconds};
  check_weights_path(config.save_weights, job.model);
  TrainingJob training = prepare_training(config, job.graph(), job.plan, job.real);
  training.ties = job.model.ties;
  training.write_weights = [&](const std::vector<at::Tensor>& values, int64_t steps) {
    save_model_weights(config.save_weights, job.model, values, steps);
  };
  const int64_t copies = configured_optimiser(config)->state_copies();
  forecast_within_limits(job, *training.micro_steps.back(), copies, where_ranks_live(request));
  if (training.validation_set)
    forecast_within_limits(job, training.validation, copies, where_ranks_live(request));
  std::signal(SIGINT, handle_stop);
  std::signal(SIGTERM, handle_stop);
  return run_on_ranks(request, [&](Transport& transport) {
    Trainer trainer(training, &transport, transport_name(request));
    const TrainOutcome own = trainer.run();
    if (transport.rank() == 0) report(own, options);
  });
}

void add_key(CLI::App& command, const ConfigKey& key, Options* options) {
  const auto take = [options, &key](const std::string& text) {
    options->given.emplace_back(key.option, text);
  };
  CLI::Option* option = nullptr;
  if (key.type == ConfigType::kFlag)
    option = command.add_flag_callback(
        key.option, [take] { take("true"); }, key.help);
  else
    option = command.add_option_function<std::string>(key.option, take, key.help);
  option->group(key.table);
}

}  // namespace train_command

void add_train(CLI::App& app, int* exit_code) {
  using namespace train_command;
  CLI::App* command = app.add_subcommand(
      "train",
      "trains a model on a placement; a run folder keeps checkpoints, and starting the same "
      "command again resumes");
  auto options = std::make_shared<Options>();
  command->add_option("--config", options->config_file,
                      "TOML file; the command line overrides what it says");
  for (const ConfigKey& key : config_keys()) add_key(*command, key, options.get());
  command->add_option("--memory", options->memory, "limit per worker: 16GiB")->group("placement");
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("run");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
