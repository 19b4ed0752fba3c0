#include "tessera/train/trainer.h"

#include <cmath>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/comm/together.h"
#include "tessera/data/domain_specs.h"
#include "tessera/data/finite.h"
#include "tessera/graph/domains.h"
#include "tessera/lower/multigrid.h"
#include "tessera/optim/averaged.h"
#include "tessera/train/configured.h"
#include "tessera/train/growing_cycles.h"
#include "tessera/train/label_check.h"

namespace tessera {

std::atomic<bool> stop_requested{false};
std::atomic<bool> training_begun{false};

namespace {

std::vector<ParameterId> held_by(const std::vector<Members>& holders, int rank) {
  std::vector<ParameterId> held;
  for (size_t id = 0; id < holders.size(); ++id)
    if (holds(holders[id], rank)) held.push_back(static_cast<ParameterId>(id));
  return held;
}

}  // namespace

Trainer::Trainer(const TrainingJob& job, Transport* transport, const std::string& transport_name,
                 Device& device)
    : job_(job),
      transport_(transport),
      transport_name_(transport_name),
      everyone_(everyone(transport->size())),
      parameters_(job.graph, held_by(job.micro_steps[0]->holders(), transport->rank()),
                  job.config.seed, job.real, device),
      optimiser_(configured_optimiser(job.config)),
      learning_rate_(configured_learning_rate(job.config, job.total_steps, job.steps_per_epoch)),
      early_stopping_(configured_early_stopping(job.config)),
      plateau_(configured_plateau(job.config)),
      loader_(job.train_loader()) {
  steps_ = {job.micro_steps, job.partial_micro_steps};
  micro_steps_ = executors_for(steps_.micro_steps);
  partial_micro_steps_ = executors_for(steps_.partial_micro_steps);
  multigrid_ = job.plan.multigrid;
  optimiser_->keep_state_in(parameters_.states());
  if (job_.serial_step) serial_check_ = std::make_unique<SerialCheck>(job, &parameters_, transport);
  if (job_.validation_set.samples)
    validator_ = std::make_unique<Validator>(job, job.validation_set, &parameters_, transport);
  for (int domain : job.validated_targets())
    target_validators_.try_emplace(domain_name(domain), job, job.targets[domain - 1].validation,
                                   &parameters_, transport);
}

Trainer::Executors Trainer::executors_for(
    const std::vector<std::shared_ptr<const Lowering>>& lowerings) {
  std::map<const Lowering*, std::shared_ptr<Executor>> made;
  Executors executors;
  for (const auto& lowering : lowerings) {
    std::shared_ptr<Executor>& executor = made[lowering.get()];
    if (!executor)
      executor =
          std::make_shared<Executor>(lowering->graph(), lowering->program(transport_->rank()),
                                     &parameters_, transport_, ExecutorOptions{job_.real});
    executors.push_back(executor);
  }
  return executors;
}

const Lowering& Trainer::lowering_of(int64_t batch) const {
  const auto& lowerings = is_partial(batch) ? steps_.partial_micro_steps : steps_.micro_steps;
  return *lowerings[batch % job_.config.accumulation];
}

Executor& Trainer::executor_of(int64_t batch) const {
  const Executors& executors = is_partial(batch) ? partial_micro_steps_ : micro_steps_;
  return *executors[batch % job_.config.accumulation];
}

std::vector<ScoreName> Trainer::scores_shown() const {
  return scores_of(scored_task(*job_.train_set), num_classes(job_.graph));
}

double Trainer::seconds() const {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - started_;
  return seconds_before_ + now.count();
}

double Trainer::learning_rate() const {
  if (!plateau_) return learning_rate_.at(step_);
  return warmed_up(plateau_->rate(), step_, job_.config.warmup_steps);
}

TrainOutcome Trainer::run() {
  check_all_labels(job_, *transport_);
  start_or_resume();
  start_prefetching();
  int64_t saved_at = outcome_.resumed_at.value_or(-1);
  const bool stopped_before = outcome_.resumed_at && early_stopping_.should_stop();
  if (stopped_before) outcome_.end = TrainEnd::kEarlyStopped;
  while (step_ < job_.total_steps && !stopped_before) {
    const double loss = train_step();
    ++step_;
    outcome_.loss = loss;
    outcome_.losses.push_back(loss);
    const bool epoch_ends = step_ % job_.steps_per_epoch == 0 || step_ == job_.total_steps;
    if (epoch_ends && validator_) validate();
    log_step(loss);
    add_cycles_where_needed();
    const bool stopping = anyone_wants_to_stop();
    const int64_t interval = job_.config.checkpoint_interval;
    const bool due = interval > 0 ? step_ % interval == 0 : epoch_ends;
    const bool early = epoch_ends && early_stopping_.should_stop();
    if (due || stopping || early || improved_) {
      save_checkpoint(improved_);
      saved_at = step_;
    }
    improved_ = false;
    outcome_.end = stopping ? TrainEnd::kInterrupted : TrainEnd::kEarlyStopped;
    if (stopping || early) break;
    outcome_.end = TrainEnd::kFinished;
  }
  if (saved_at != step_) save_checkpoint(false);
  finish_run();
  return outcome_;
}

/// Collective over all ranks.
void Trainer::use_cycles(const Multigrid& multigrid) {
  multigrid_ = multigrid;
  steps_ = job_.growing_cycles->steps(job_, multigrid);
  micro_steps_ = executors_for(steps_.micro_steps);
  partial_micro_steps_ = executors_for(steps_.partial_micro_steps);
}

void Trainer::add_cycles_where_needed() {
  const TrainConfig& config = job_.config;
  const auto beyond = [](std::optional<double> found, double limit) {
    return limit > 0 && found && *found > limit;
  };
  if (!beyond(std::max(residual_, gradient_residual_), config.multigrid_residual) &&
      !(serial_difference_ && beyond(serial_difference_->gradient, config.multigrid_error)))
    return;
  use_cycles(with_more_cycles(*multigrid_));
  if (progress_)
    progress_->say(fmt::format("from step {} on {} V-cycles forward and {} backward", step_ + 1,
                               multigrid_->forward, multigrid_->backward));
}

void Trainer::start_prefetching() {
  PrefetchOptions options;
  options.first_batch = step_ * job_.config.accumulation;
  options.end_batch = job_.total_steps * job_.config.accumulation;
  options.real = job_.real;
  const Graph& graph = job_.micro_steps[0]->graph();
  for (int domain = 0; domain <= static_cast<int>(job_.targets.size()); ++domain)
    prefetch_.push_back(std::make_unique<Prefetch>(job_.domain_loader(domain),
                                                   loads_of(graph, program(), domain), options));
}

double Trainer::train_step() {
  if (job_.config.on_nan == "skip") {
    good_buffers_.clear();
    for (size_t id = 0; id < parameters_.values().size(); ++id) {
      const at::Tensor& value = parameters_.values()[id];
      const bool is_buffer = job_.graph.parameters()[id].role == ParameterRole::kBuffer;
      good_buffers_.push_back(is_buffer && value.defined() ? value.clone() : at::Tensor());
    }
  }
  gradient_norm_ = NAN;
  residual_.reset();
  gradient_residual_.reset();
  last_learning_rate_ = learning_rate();
  double loss = 0;
  const int64_t count = job_.config.accumulation;
  for (int64_t micro = 0; micro < count && std::isfinite(loss); ++micro) {
    run_micro_step(batch_of(micro));
    loss += executor_of(batch_of(micro)).loss() / static_cast<double>(count);
    const std::vector<double> measured = executor_of(batch_of(micro)).measured();
    residual_ = std::max(residual_, solve_residual(measured));
    gradient_residual_ = std::max(gradient_residual_, solve_gradient_residual(measured));
  }
  if (std::isfinite(loss)) gradient_norm_ = executor_of(batch_of(count - 1)).gradient_norm();
  if (job_.config.print_loss && is_first()) print_out("step {} loss {:.17g}\n", step_ + 1, loss);
  if (!std::isfinite(loss) || !std::isfinite(gradient_norm_)) handle_bad_step(loss);
  return loss;
}

void Trainer::run_micro_step(int64_t batch) {
  StepContext context;
  context.seed = job_.config.seed;
  context.step = batch;
  context.load = [&](ValueId input, const Box& box, at::Tensor target) {
    const Graph& graph = lowering_of(batch).graph();
    prefetch_[domain_of_input(graph, input)]->load({field_of(graph, input), box}, batch, target);
  };
  if (step_ == 0 && !job_.config.dump_gradients.empty())
    context.gradients_complete = [&] { dump_gradients(); };
  context.update = [&] {
    optimiser_->set_learning_rate(last_learning_rate_);
    optimiser_->step(parameters_.values(), parameters_.gradients());
  };
  serial_difference_.reset();
  if (!serial_check_ || step_ % job_.config.check_serial != 0 || is_partial(batch))
    return executor_of(batch).run(context);
  StepContext serial{.seed = context.seed, .step = context.step};
  serial.load = [&](ValueId input, const Box& box, at::Tensor target) {
    loader_.load({field_of(job_.serial_step->graph(), input), box}, batch, target);
  };
  serial_check_->run(serial);
  context.gradients_complete = [&, before = context.gradients_complete] {
    if (before) before();
    serial_check_->compare_gradients();
  };
  executor_of(batch).run(context);
  serial_difference_ = serial_check_->difference(executor_of(batch).loss());
  if (progress_)
    progress_->say(fmt::format(
        "step {}: multigrid is {:.2e} from the serial loss, {:.2e} from the serial gradient",
        step_ + 1, serial_difference_->loss, serial_difference_->gradient));
}

/// The step's whole gradients, before clipping, under the parameters' names.
void Trainer::dump_gradients() {
  const std::vector<at::Tensor> gradients = whole_gradients();
  do_together(*transport_, [&] {
    if (is_first()) save_gradients(job_.config.dump_gradients, job_.graph, gradients);
  });
}

/// Stop: say why, as far as this rank's data tells. Skip: as if the step had not been.
void Trainer::handle_bad_step(double loss) {
  if (job_.config.on_nan == "skip") {
    for (size_t id = 0; id < good_buffers_.size(); ++id)
      if (good_buffers_[id].defined()) parameters_.values()[id].copy_(good_buffers_[id]);
    if (progress_)
      progress_->say(
          fmt::format("step {}: the loss is {}, the gradient's norm {}; the step is skipped",
                      step_ + 1, loss, gradient_norm_));
    return;
  }
  fail_together(*transport_, bad_sample());
  const std::string norm =
      std::isfinite(loss) ? fmt::format(", the gradient's norm {}", gradient_norm_) : std::string();
  throw_error<InvalidInput>(
      "[train] step {}: the loss is {}{}; lower --learning-rate, clip with --clip-norm, or use "
      "--on-nan skip",
      step_ + 1, loss, norm);
}

/// What is wrong with this rank's part of the step's samples; empty where nothing is.
std::string Trainer::bad_sample() {
  for (int domain = 0; domain <= static_cast<int>(job_.targets.size()); ++domain)
    for (int64_t micro = 0; micro < job_.config.accumulation; ++micro)
      if (const std::string bad = bad_sample_of(domain, batch_of(micro)); !bad.empty()) return bad;
  return "";
}

std::string Trainer::bad_sample_of(int domain, int64_t batch) {
  const BatchLoader loader = job_.domain_loader(domain);
  const Dataset& images = domain == 0 ? *job_.train_set : *job_.targets[domain - 1].images;
  for (const BatchBox& request :
       loads_of(lowering_of(batch).graph(), executor_of(batch).program(), domain)) {
    if (request.field != Field::kImages || request.box.empty()) continue;
    at::Tensor box = at::empty(request.box.shape(), at::kDouble);
    loader.load(request, batch, box);
    if (const std::optional<Shape> place = first_non_finite(box)) {
      const int64_t entry = request.box[0].begin + (*place)[0];
      return fmt::format(
          "[train] step {}: sample {} of the data{} holds a value that is not a finite number, at "
          "{} of {}; fix the data, or use --on-nan skip",
          step_ + 1, images.name_of(loader.plan().sample(batch, entry)),
          domain == 0 ? "" : " of " + domain_name(domain), to_string(*place),
          to_string(request.box));
    }
  }
  return "";
}

double Trainer::monitored() const {
  const ValidationResult& result = *outcome_.validation;
  for (const ScoreName& score : result.names)
    if (job_.config.monitor == score.name) return result.scores.*score.value;
  return result.loss;
}

void Trainer::validate() {
  {
    const WithAverages averages(*optimiser_, parameters_.values());
    outcome_.validation = validator_->run();
    for (auto& [name, validator] : target_validators_) outcome_.targets[name] = validator.run();
  }
  const ValidationResult& result = *outcome_.validation;
  improved_ = early_stopping_.update(monitored()) == EarlyStopping::Verdict::kImproved;
  if (plateau_) plateau_->update(monitored());
  if (!progress_) return;
  const int64_t epoch = (step_ + job_.steps_per_epoch - 1) / job_.steps_per_epoch;
  progress_->say(fmt::format("epoch {}: validation {}{}", epoch, to_string(result),
                             improved_ ? " (best)" : ""));
  for (const auto& [name, target] : outcome_.targets)
    progress_->say(fmt::format("epoch {}: {} {}", epoch, name, to_string(target)));
}

bool Trainer::anyone_wants_to_stop() {
  double votes[] = {stop_requested.load() ? 1.0 : 0.0, complaint_.empty() ? 0.0 : 1.0};
  AllReduce sum(*transport_, everyone_, votes, 2, SumType::kFloat64);
  sum.finish();
  if (votes[1] > 0) fail_together(*transport_, complaint_);
  return votes[0] > 0;
}

void Trainer::log_step(double loss) {
  const bool validated =
      outcome_.validation && (step_ % job_.steps_per_epoch == 0 || step_ == job_.total_steps);
  const bool row_due =
      step_ == 1 || validated || serial_difference_ || step_ % job_.config.log_interval == 0;
  if (metrics_ && row_due) {
    std::vector<std::optional<double>> row{
        static_cast<double>((step_ - 1) / job_.steps_per_epoch + 1), seconds(), loss,
        last_learning_rate_, gradient_norm_};
    const auto add = [&](const ValidationResult* result) {
      row.push_back(result ? std::optional(result->loss) : std::nullopt);
      for (const ScoreName& score : scores_shown())
        row.push_back(result ? std::optional(result->scores.*score.value) : std::nullopt);
    };
    add(validated ? &*outcome_.validation : nullptr);
    for (const auto& [name, validator] : target_validators_)
      add(validated ? &outcome_.targets.at(name) : nullptr);
    if (job_.plan.multigrid) {
      row.push_back(residual_);
      row.push_back(gradient_residual_);
      row.push_back(static_cast<double>(multigrid_->forward));
      row.push_back(static_cast<double>(multigrid_->backward));
      for (double SerialDifference::*each : {&SerialDifference::loss, &SerialDifference::gradient})
        row.push_back(serial_difference_ ? std::optional((*serial_difference_).*each)
                                         : std::nullopt);
    }
    try {
      metrics_->append(step_, row);
    } catch (const InvalidInput& error) {
      complaint_ = error.what();  // told to all where they meet next
    }
  }
  if (!progress_) return;
  int64_t amount = 0;
  for (int64_t micro = 1; micro <= job_.config.accumulation; ++micro)
    amount += batches().size_of(batch_of(0) - micro);
  const Shape shape = job_.graph.type(job_.graph.inputs()[0]).shape();
  if (scored_task(*job_.train_set) != ScoredTask::kImageClasses)
    for (size_t axis = 2; axis < shape.size(); ++axis) amount *= shape[axis];
  progress_->show({(step_ - 1) / job_.steps_per_epoch + 1, step_, loss, last_learning_rate_, amount,
                   residual_, gradient_residual_});
}

}  // namespace tessera
