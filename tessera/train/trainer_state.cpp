#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/checkpoint/model_fit.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/comm/together.h"
#include "tessera/files/json.h"
#include "tessera/optim/averaged.h"
#include "tessera/runtime/holders_agree.h"
#include "tessera/train/growing_cycles.h"
#include "tessera/train/trainer.h"

// How a run begins, is saved and ends: the part of the trainer that deals with files.

namespace tessera {
namespace {

constexpr const char *kValidationsWithoutBest = "validations_without_best",
                     *kPlateauRate = "plateau_rate", *kPlateauBest = "plateau_best",
                     *kPlateauBad = "plateau_validations_without_best",
                     *kClassWeights = "class_weights", *kIntensities = "intensities",
                     *kSeconds = "seconds", *kCycles = "multigrid_cycles";

/// "0.5/2/1", with all their digits.
std::string slashed_digits(const std::vector<double>& numbers) {
  std::vector<std::string> words;
  for (double number : numbers) words.push_back(fmt::format("{}", number));
  return joined(words, "/");
}

/// Weights that were counted anew must be those that the run began with: other labels would change
/// the loss in the middle of it.
void check_class_weights(const std::vector<double>& counted, const TrainingState& state,
                         const std::string& checkpoint) {
  const auto found = state.metadata.find(kClassWeights);
  if (found == state.metadata.end() || counted.empty()) return;
  if (found->second == slashed_digits(counted)) return;
  throw_error<InvalidInput>(
      "[resume] {} was made with the class weights {}, the labels of the training samples now give "
      "{}; give the old ones to --loss as class_weights={}, or --resume no to start anew",
      checkpoint, found->second, slashed_digits(counted), found->second);
}

/// The same for the numbers that images are brought to one range by.
void check_intensities(const Intensities& found, const TrainingState& state,
                       const std::string& checkpoint) {
  const auto kept = state.metadata.find(kIntensities);
  if (kept == state.metadata.end() || intensities_from_json(kept->second) == found) return;
  throw_error<InvalidInput>(
      "[resume] {} was made with images normalised by {}, the training samples now give {}; give "
      "the same data and --normalise, or --resume no to start anew",
      checkpoint, excerpt(kept->second), to_json(found));
}

/// A number of the checkpoint's metadata, at least 0 where it is a count; none where it has none.
template <class T>
std::optional<T> number_in(const TrainingState& state, const char* name,
                           const std::string& checkpoint) {
  const auto found = state.metadata.find(name);
  if (found == state.metadata.end()) return std::nullopt;
  const auto number = read_number<T>(found->second);
  if (!number || (std::is_integral_v<T> && *number < 0))
    throw_error<InvalidInput>("[resume] {}: its \"{}\" is \"{}\"; it must be a {}", checkpoint,
                              name, found->second,
                              std::is_integral_v<T> ? "whole number from 0" : "number");
  return number;
}

/// With all their digits: a resumed run continues with the same bits.
void describe_plateau(const Plateau::State& plateau, Metadata* metadata) {
  (*metadata)[kPlateauRate] = fmt::format("{:.17g}", plateau.rate);
  (*metadata)[kPlateauBad] = std::to_string(plateau.num_bad);
  if (plateau.best) (*metadata)[kPlateauBest] = fmt::format("{:.17g}", *plateau.best);
}

/// `fresh` where the run that wrote the checkpoint had another schedule.
Plateau::State plateau_in(const TrainingState& state, const Plateau::State& fresh,
                          const std::string& checkpoint) {
  Plateau::State plateau = fresh;
  if (const auto rate = number_in<double>(state, kPlateauRate, checkpoint)) plateau.rate = *rate;
  if (const auto bad = number_in<int64_t>(state, kPlateauBad, checkpoint)) plateau.num_bad = *bad;
  plateau.best = number_in<double>(state, kPlateauBest, checkpoint);
  return plateau;
}

RunResults results_in(const std::string& text, const std::string& checkpoint) {
  try {
    return parse_results(text);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[resume] {}: its \"results\" cannot be read: {}", checkpoint,
                              error.what());
  }
}

}  // namespace

/// Rank 0 decides which checkpoint, and says so to the others: all continue from the same one.
void Trainer::start_or_resume() {
  const TrainConfig& config = job_.config;
  std::string path;
  do_together(*transport_, [&] {
    if (is_first()) path = claim_folder();
  });
  outcome_.folder = broadcast_text(*transport_, outcome_.folder);
  if (!checkpoints_) checkpoints_.emplace(checkpoints_of_run(outcome_.folder), 1);  // to read from
  path = broadcast_text(*transport_, path);
  std::vector<std::string> skipped;
  do_together(*transport_, [&] {
    if (!path.empty())
      restore(path);
    else if (!config.init_weights.empty())
      skipped = load_initial_weights();
    if (is_first()) open_records(path);
    if (progress_ && !skipped.empty())
      progress_->say(fmt::format("skipped where {} and the model differ:{}", config.init_weights,
                                 listed(skipped)));
  });
  outcome_.checkpoint = path;
}

/// What was passed over, where that is allowed.
std::vector<std::string> Trainer::load_initial_weights() {
  const std::string& path = job_.config.init_weights;
  if (job_.config.skip_mismatched)
    return load_fitting_weights(path, job_.graph, parameters_.values(), job_.ties);
  load_weights(path, job_.graph, parameters_.values(), job_.ties);
  return {};
}

/// Rank 0: takes the run folder; returns the checkpoint to resume from, or nothing.
std::string Trainer::claim_folder() {
  const TrainConfig& config = job_.config;
  outcome_.folder = config.folder.empty() ? new_run_folder(config.model) : config.folder;
  if (config.folder.empty()) print_error("run folder {}\n", outcome_.folder);
  folder_.emplace(outcome_.folder);
  checkpoints_.emplace(checkpoints_of_run(outcome_.folder),
                       static_cast<int>(config.keep_checkpoints));
  checkpoints_->claim();
  const std::optional<std::string> latest = checkpoints_->latest_valid();
  // Also where the run does not go on from it: a folder is one run, whose checkpoints fit together.
  if (latest) check_same_settings(outcome_.folder, read_state_file(*latest).state, config);
  if (config.resume == "no") return "";
  return config.resume == "auto" ? latest.value_or("") : config.resume;
}

/// After "step", in the order of log_step().
std::vector<std::string> Trainer::metrics_columns() const {
  std::vector<std::string> columns{"epoch",         "seconds",       "loss",
                                   "learning_rate", "gradient_norm", "val_loss"};
  for (const ScoreName& score : scores_shown()) columns.push_back(score.name);
  for (const auto& [target, validator] : target_validators_) {
    columns.push_back(target + "_loss");
    for (const ScoreName& score : scores_shown()) columns.push_back(target + "_" + score.name);
  }
  if (job_.plan.multigrid)
    columns.insert(columns.end(),
                   {"multigrid_residual", "multigrid_gradient_residual", "forward_cycles",
                    "backward_cycles", "serial_loss_error", "serial_gradient_error"});
  return columns;
}

/// The configuration as it is recorded, with the folder that the run has.
std::string Trainer::config_text() const {
  TrainConfig config = job_.config;
  config.folder = outcome_.folder;
  return to_json(config);
}

/// Rank 0: run.json, metrics.csv and the progress shown, from where the run is now.
void Trainer::open_records(const std::string& resumed_from) {
  const TrainConfig& config = job_.config;
  const std::optional<int64_t> resumed = resumed_from.empty() ? std::nullopt : std::optional(step_);
  const at::Device place = parameters_.device().place();
  RunDescription description{.config_json = config_text(),
                             .placement_json = to_json(job_.plan),
                             .num_ranks = job_.plan.num_ranks(),
                             .transport = transport_name_,
                             .device = name_of(place),
                             .seed = config.seed,
                             .resumed_at = resumed,
                             .intensities_json = to_json(job_.intensities)};
  folder_->write_description(description);
  metrics_.emplace(folder_->file("metrics.csv"), metrics_columns(), resumed);
  ProgressOptions options;
  options.style = progress_style(transport_->rank());
  options.first_step = step_;
  options.total_steps = job_.total_steps;
  if (scored_task(*job_.train_set) == ScoredTask::kImageClasses)
    options.unit = ProgressUnit::kImages;
  options.num_epochs = (job_.total_steps + job_.steps_per_epoch - 1) / job_.steps_per_epoch;
  progress_.emplace(options);
  if (!place.is_cpu()) progress_->say("on " + description.device);
  if (!job_.class_weights.empty())
    progress_->say("class weights by the training labels: " + slashed_digits(job_.class_weights));
  if (resumed)
    progress_->say(fmt::format("resumed at step {} from {}", step_, resumed_from));
  else if (config.resume == "auto" &&
           !scan_checkpoints(checkpoints_of_run(outcome_.folder)).empty())
    progress_->say("no checkpoint in the run folder can be used; the run starts anew");
}

void Trainer::restore(const std::string& checkpoint) {
  const TrainingState state = checkpoints_->load(checkpoint);
  check_fits(job_.graph, state, checkpoint);
  if (state.seed != job_.config.seed)
    throw_error<InvalidInput>(
        "[resume] {} was made with --seed {}, this run has {}; give the same seed, or --resume no "
        "to start anew",
        checkpoint, state.seed, job_.config.seed);
  check_class_weights(job_.class_weights, state, checkpoint);
  check_intensities(job_.intensities, state, checkpoint);
  const std::map<std::string, at::Tensor> model = tensors_under(state, "model.");
  for (ParameterId id : program().parameters)
    parameters_.values()[id].copy_(model.at(job_.graph.parameters()[id].name));
  NamedTensors optimiser;
  for (const auto& [name, tensor] : tensors_under(state, "optimiser."))
    optimiser.emplace_back(name, tensor);
  try {
    optimiser_->load_state(job_.graph, parameters_.values(), optimiser);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[resume] {}: {}", checkpoint, error.what());
  }
  EarlyStopping::State stopping;
  if (!std::isnan(state.best_metric)) stopping.best = state.best_metric;
  stopping.num_without = number_in<int64_t>(state, kValidationsWithoutBest, checkpoint).value_or(0);
  early_stopping_.load_state(stopping);
  if (plateau_) plateau_->load_state(plateau_in(state, plateau_->state(), checkpoint));
  if (const auto found = state.metadata.find("results"); found != state.metadata.end())
    static_cast<RunResults&>(outcome_) = results_in(found->second, checkpoint);
  if (!validator_) outcome_.validation.reset();  // a run that goes on elsewhere may have none
  if (const auto found = state.metadata.find(kCycles);
      found != state.metadata.end() && job_.growing_cycles)
    use_cycles(with_cycles(*multigrid_, found->second));
  seconds_before_ = number_in<double>(state, kSeconds, checkpoint).value_or(0);
  step_ = state.step;
  outcome_.resumed_at = step_;
}

/// Collective. Only rank 0's holds tensors.
TrainingState Trainer::snapshot() {
  TrainingState state;
  const std::vector<at::Tensor> values = whole_parameters();
  for (size_t id = 0; id < values.size(); ++id)
    state.tensors.emplace_back(fmt::format("model.{}", job_.graph.parameters()[id].name),
                               values[id]);
  for (const auto& [name, tensor] : whole_optimiser_state())
    state.tensors.emplace_back(fmt::format("optimiser.{}", name), tensor);
  state.step = step_;
  state.epoch = step_ / job_.steps_per_epoch;
  state.position_in_epoch = step_ % job_.steps_per_epoch;
  state.seed = job_.config.seed;
  state.best_metric = early_stopping_.state().best.value_or(NAN);
  state.metadata = {{"model", as_utf8(job_.config.model)},
                    {"config", config_text()},
                    {"placement", to_json(job_.plan)},
                    {"results", to_json(static_cast<const RunResults&>(outcome_))},
                    {kSeconds, fmt::format("{}", seconds())},
                    {kValidationsWithoutBest, std::to_string(early_stopping_.state().num_without)}};
  state.metadata[kIntensities] = to_json(job_.intensities);
  if (plateau_) describe_plateau(plateau_->state(), &state.metadata);
  if (job_.growing_cycles) state.metadata[kCycles] = cycles_text(*multigrid_);
  if (!job_.class_weights.empty())
    state.metadata[kClassWeights] = slashed_digits(job_.class_weights);
  return state;
}

void Trainer::save_checkpoint(bool is_best) {
  check_holders_agree(*transport_, *job_.micro_steps[0], parameters_.values(), step_);
  const TrainingState state = snapshot();
  std::string path;
  do_together(*transport_, [&] {
    if (!is_first()) return;
    if (metrics_) metrics_->sync();
    path = checkpoints_->save(state, is_best);
  });
  outcome_.checkpoint = broadcast_text(*transport_, path);
}

void Trainer::finish_run() {
  outcome_.steps = step_;
  if (progress_) progress_->finish();
  const WeightsTarget target = weights_target(job_.config.save_weights);
  if (target.best) return save_best_weights(target.path);
  if (target.path.empty()) return;
  const WithAverages averages(*optimiser_, parameters_.values());
  const std::vector<at::Tensor> values = whole_parameters();
  do_together(*transport_, [&] {
    if (is_first()) write_weights(target.path, values, step_);
  });
}

void Trainer::save_best_weights(const std::string& path) {
  do_together(*transport_, [&] {
    if (!is_first()) return;
    const std::optional<std::string> best = checkpoints_->best();
    if (!best)
      throw_error<InvalidInput>(
          "[--save-weights] {} has no best checkpoint: no validation gave a number; the weights at "
          "the end are in {}",
          outcome_.folder, outcome_.checkpoint);
    const TrainingState state = checkpoints_->load(*best);
    write_weights(path.empty() ? folder_->file("best.safetensors") : path,
                  applied_weights(job_.graph, state), state.step);
  });
}

void Trainer::write_weights(const std::string& path, const std::vector<at::Tensor>& values,
                            int64_t steps) const {
  if (job_.write_weights)
    job_.write_weights(path, values, steps);
  else
    save_weights(path, job_.graph, values);
}

}  // namespace tessera
