#include <cstring>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checksum.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/train/configured.h"
#include "tessera/train/trainer.h"

// How a run begins, is saved and ends: the part of the trainer that deals with files.

namespace tessera {
namespace {

const std::vector<std::string> kMetrics{"epoch",    "loss",     "learning_rate", "gradient_norm",
                                        "val_loss", "accuracy", "mean_iou",      "dice"};

}  // namespace

/// Rank 0 decides which checkpoint, and says so to the others: all continue from the same one.
void Trainer::start_or_resume() {
  const TrainConfig& config = job_.config;
  std::string path;
  if (is_first()) {
    folder_.emplace(config.folder);
    checkpoints_.claim();
    if (config.resume == "auto")
      path = checkpoints_.latest_valid().value_or("");
    else if (config.resume != "no")
      path = config.resume;
  }
  path = broadcast_text(path);
  if (!path.empty())
    restore(checkpoints_.load(path));
  else if (!config.init_weights.empty())
    load_weights(config.init_weights, job_.graph, parameters_.values());
  if (is_first()) {
    const std::optional<int64_t> resumed = path.empty() ? std::nullopt : std::optional(step_);
    RunDescription description{to_json(config), to_json(job_.plan), job_.plan.num_ranks(),
                               transport_name_, config.seed, resumed};
    folder_->write_description(description);
    metrics_.emplace(folder_->file("metrics.csv"), kMetrics, resumed);
  }
  ProgressOptions options;
  options.style = progress_style(transport_->rank());
  options.first_step = step_;
  options.total_steps = job_.total_steps;
  options.num_epochs = (job_.total_steps + job_.steps_per_epoch - 1) / job_.steps_per_epoch;
  if (is_first()) progress_.emplace(options);
  if (progress_ && !path.empty())
    progress_->say(fmt::format("resumed at step {} from {}", step_, path));
}

void Trainer::restore(const TrainingState& state) {
  check_fits(job_.graph, state);
  if (state.seed != job_.config.seed)
    throw_error<InvalidInput>(
        "[resume] the checkpoint was made with --seed {}, this run has {}; give the same seed, or "
        "--resume no to start anew",
        state.seed, job_.config.seed);
  const std::map<std::string, at::Tensor> model = tensors_under(state, "model.");
  for (size_t id = 0; id < job_.graph.parameters().size(); ++id)
    parameters_.values()[id].copy_(model.at(job_.graph.parameters()[id].name));
  NamedTensors optimiser;
  for (const auto& [name, tensor] : tensors_under(state, "optimiser."))
    optimiser.emplace_back(name, tensor);
  optimiser_->load_state(job_.graph, parameters_.values(), optimiser);
  EarlyStopping::State stopping;
  if (!std::isnan(state.best_metric)) stopping.best = state.best_metric;
  if (const auto found = state.metadata.find("validations_without_best");
      found != state.metadata.end())
    stopping.num_without = std::stoll(found->second);
  early_stopping_.load_state(stopping);
  step_ = state.step;
}

TrainingState Trainer::snapshot() const {
  TrainingState state;
  for (size_t id = 0; id < job_.graph.parameters().size(); ++id)
    state.tensors.emplace_back("model." + job_.graph.parameters()[id].name,
                               parameters_.values()[id]);
  for (const auto& [name, tensor] : optimiser_->state(job_.graph))
    state.tensors.emplace_back("optimiser." + name, tensor);
  state.step = step_;
  state.epoch = step_ / job_.steps_per_epoch;
  state.position_in_epoch = step_ % job_.steps_per_epoch;
  state.seed = job_.config.seed;
  state.best_metric = early_stopping_.state().best.value_or(NAN);
  state.metadata = {{"model", job_.config.model},
                    {"config", to_json(job_.config)},
                    {"placement", to_json(job_.plan)},
                    {"validations_without_best",
                     std::to_string(early_stopping_.state().num_without)}};
  return state;
}

/// Parameters are the same on all ranks by construction; a checkpoint is where we make sure.
void Trainer::check_ranks_agree() {
  std::vector<uint64_t> sums(everyone_.size());
  sums[transport_->rank()] = checksum(parameters_.values());
  AllGather gather(*transport_, everyone_, std::vector<int64_t>(everyone_.size(), sizeof(uint64_t)),
                   sums.data());
  gather.finish();
  for (size_t rank = 1; rank < sums.size(); ++rank)
    TESSERA_CHECK(sums[rank] == sums[0], "step {}: the parameters of rank {} differ from rank 0's",
                  step_, rank);
}

void Trainer::save_checkpoint(bool is_best) {
  check_ranks_agree();
  std::string path;
  if (is_first()) {
    if (metrics_) metrics_->sync();
    path = checkpoints_.save(snapshot(), is_best);
  }
  outcome_.checkpoint = broadcast_text(path);
}

void Trainer::finish_run() {
  outcome_.steps = step_;
  if (progress_) progress_->finish();
  if (is_first() && !job_.config.save_weights.empty())
    save_weights(job_.config.save_weights, job_.graph, parameters_.values());
  barrier(*transport_, everyone_);
}

std::string Trainer::broadcast_text(const std::string& text) {
  int64_t size = static_cast<int64_t>(text.size());
  broadcast(*transport_, everyone_, 0, &size, sizeof(size));
  std::string result = text;
  result.resize(static_cast<size_t>(size));
  if (size > 0) broadcast(*transport_, everyone_, 0, result.data(), size);
  return result;
}

}  // namespace tessera
