#include "tessera/train/training_job.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/domains.h"
#include "tessera/graph/transform.h"
#include "tessera/lower/inference.h"
#include "tessera/train/configured.h"
#include "tessera/train/growing_cycles.h"
#include "tessera/train/run_length.h"
#include "tessera/train/serial_check.h"
#include "tessera/train/training_data.h"

namespace tessera {
namespace {

void check_monitor(const std::string& monitor, ScoredTask task, int64_t num_classes) {
  std::vector<std::string> legal{"loss"};
  for (const ScoreName& score : scores_of(task, num_classes)) legal.push_back(score.name);
  if (std::ranges::find(legal, monitor) != legal.end()) return;
  const char* const targets = task == ScoredTask::kNumbers        ? "targets that are numbers"
                              : task == ScoredTask::kImageClasses ? "labels per image"
                                                                  : "labels per pixel";
  throw_error<InvalidInput>("[--monitor] {} have no {}; use {}", targets, monitor,
                            joined(legal, " or "));
}

/// At most three kinds of batches in a step: the first sets the gradients to zero, the last reduces
/// them and updates, those between only add.
std::vector<std::shared_ptr<const Lowering>> lower_micro_steps(const TrainingJob& job,
                                                               const Graph& graph) {
  const std::unique_ptr<Optimiser> optimiser = configured_optimiser(job.config);
  std::map<std::pair<bool, bool>, std::shared_ptr<const Lowering>> made;
  std::vector<std::shared_ptr<const Lowering>> steps;
  const int64_t count = job.config.accumulation;
  for (int64_t i = 0; i < count; ++i) {
    LowerOptions options;
    const bool last = i + 1 == count;
    options.step = last ? StepKind::kTrain : StepKind::kGradient;
    options.zero_gradients = i == 0;
    options.reduce_gradients = last;
    options.accumulated_steps = count;
    options.clip_norm = job.config.clip_norm;
    options.optimiser = {optimiser->state_copies(), optimiser->counts_steps()};
    options.real = job.real;
    options.device = job.device;
    options.few_samples = &graph != &job.graph;
    auto& lowering = made[{options.zero_gradients, last}];
    if (!lowering) lowering = std::make_shared<const Lowering>(graph, job.plan, options);
    steps.push_back(lowering);
  }
  return steps;
}

/// The last batch of an epoch has its own programs: its statistics, means and parts are those of
/// the samples that it has. Weights, gradients and the optimiser's state are the same ones.
std::vector<std::shared_ptr<const Lowering>> lower_partial_micro_steps(const TrainingJob& job) {
  const BatchPlan& plan = *job.batches;
  if (plan.last_size() == plan.batch_size()) return {};
  try {
    auto steps = lower_micro_steps(job, with_batch(job.graph, plan.last_size()));
    for (size_t i = 0; i < steps.size(); ++i)
      TESSERA_CHECK(steps[i]->holders() == job.micro_steps[i]->holders(),
                    "other ranks hold the parameters in a smaller batch");
    return steps;
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "[--data] the last batch of an epoch has {} of {} samples, and cannot be trained on: {}; "
        "leave it out with --drop-last, or use a batch that divides the {} samples",
        plan.last_size(), plan.batch_size(), error.what(), job.train_set->size());
  }
}

void lower_partial_validation(const TrainingJob& job, const Graph& applied,
                              const LowerOptions& forward, ValidationSet* set) {
  const BatchPlan plan = job.validation_loader(*set).plan();
  if (plan.last_size() == plan.batch_size()) return;
  LowerOptions options = forward;
  options.few_samples = true;
  set->partial =
      std::make_shared<const Lowering>(with_batch(applied, plan.last_size()), job.plan, options);
}

void lower_validation(TrainingJob* job) {
  LowerOptions forward;
  forward.step = StepKind::kForward;
  forward.keep_outputs = true;
  forward.real = job->real;
  forward.device = job->device;
  const Graph applied = for_inference(labelled_task(job->graph));
  job->validation = std::make_shared<const Lowering>(applied, job->plan, forward);
  lower_partial_validation(*job, applied, forward, &job->validation_set);
  for (TargetDomain& target : job->targets)
    if (target.validation.samples)
      lower_partial_validation(*job, applied, forward, &target.validation);
}

void set_length(TrainingJob* job) {
  std::vector<BatchPlan> targets;
  for (const TargetDomain& target : job->targets) targets.push_back(target.batches);
  const RunLength length = run_length(job->config, *job->batches, targets);
  job->steps_per_epoch = length.steps_per_epoch;
  job->total_steps = length.steps;
}

}  // namespace

ScoredTask scored_task(const Dataset& data) {
  if (data.real_targets()) return ScoredTask::kNumbers;
  return data.per_pixel() ? ScoredTask::kPixelClasses : ScoredTask::kImageClasses;
}

int64_t num_classes(const Graph& graph) {
  const ValueType& output = graph.type(graph.outputs()[0]);
  return std::max<int64_t>(2, output.num_axes() > 1 ? output.channels() : 2);
}

BatchLoader TrainingJob::train_loader() const { return BatchLoader(*train_set, batches.value()); }

BatchLoader TrainingJob::domain_loader(int domain) const {
  if (domain == 0) return train_loader();
  return BatchLoader(*targets[domain - 1].images, targets[domain - 1].batches);
}

std::vector<int> TrainingJob::validated_targets() const {
  std::vector<int> validated;
  for (size_t target = 0; target < targets.size(); ++target)
    if (targets[target].validation.samples) validated.push_back(static_cast<int>(target) + 1);
  return validated;
}

BatchLoader TrainingJob::validation_loader(const ValidationSet& set) const {
  BatchPlanOptions options;
  options.num_samples = set.samples->size();
  options.batch_size = graph.type(graph.inputs()[0]).batch();
  options.order = BatchOrder::kSequential;
  // Repeated samples can be ignored where targets are labels, not where they are numbers.
  options.last = set.samples->real_targets() ? LastBatch::kKeep : LastBatch::kPad;
  return BatchLoader(*set.samples, BatchPlan(options));
}

TrainingJob prepare_training(const TrainConfig& config, const Graph& graph, const Plan& plan,
                             const Numbers& numbers, std::shared_ptr<const Dataset> data) {
  if (graph.num_trainable() == 0)
    throw_error<InvalidInput>("[train] the model has no parameter to train");
  TrainingJob job;
  job.config = config;
  job.graph = graph;
  job.plan = plan;
  job.real = numbers.type;
  job.device = numbers.device;
  if (!data) data = open_training_data(config, graph);
  if (!data->has_targets())
    throw_error<InvalidInput>(
        "[--data] the images have no targets, and there is nothing to learn; give masks or labels");
  check_monitor(config.monitor, scored_task(*data), num_classes(graph));
  job.images = split_for_training(config, data);
  prepare_data(&job);
  open_targets(&job);
  const int64_t batch = graph.type(graph.inputs()[0]).batch();
  if (job.train_set->size() < batch)
    throw_error<InvalidInput>(
        "[batches] {} cannot fill a batch of {}; use a smaller batch or more samples",
        counted(job.train_set->size(), "sample"), batch);
  if (weights_target(config.save_weights).best && !job.validation_set.samples)
    throw_error<InvalidInput>(
        "[--save-weights] best needs validation, and there is none; give --validation-fraction "
        "0.1, "
        "say, or the name of a file");
  job.batches = training_batches(job);
  job.micro_steps = lower_micro_steps(job, job.graph);
  job.partial_micro_steps = lower_partial_micro_steps(job);
  job.serial_step = lower_serial_step(job);
  if (config.multigrid_error > 0 && !job.serial_step)
    throw_error<InvalidInput>(
        "[--multigrid-error] {} is a limit of what --check-serial finds; give both",
        config.multigrid_error);
  if (config.multigrid_residual > 0 && !job.plan.multigrid)
    throw_error<InvalidInput>(
        "[--multigrid-residual] {} is a limit of what a solve leaves, and layers follow each "
        "other; it goes with --multigrid",
        config.multigrid_residual);
  if (config.multigrid_error > 0 || config.multigrid_residual > 0)
    job.growing_cycles = std::make_shared<GrowingCycles>();
  if (job.validation_set.samples) lower_validation(&job);
  set_length(&job);
  return job;
}

StepLowerings lower_steps(const TrainingJob& job, const Multigrid& multigrid) {
  TrainingJob other = job;
  other.plan.multigrid = multigrid;
  other.micro_steps = lower_micro_steps(other, other.graph);
  return {other.micro_steps, lower_partial_micro_steps(other)};
}

TrainingJob prepare_evaluation(const TrainConfig& config, const Graph& graph, const Plan& plan,
                               const Numbers& numbers, std::shared_ptr<const Dataset> data) {
  TrainingJob job;
  job.config = config;
  job.graph = labelled_task(graph);
  job.plan = plan;
  job.real = numbers.type;
  job.device = numbers.device;
  check_data(job.graph, *data);
  job.validation_set.samples = std::move(data);
  lower_validation(&job);
  return job;
}

Field field_of(const Graph& graph, ValueId input) {
  const bool is_image = input == graph.inputs()[0] || domain_of_input(graph, input) > 0;
  return is_image ? Field::kImages : Field::kTargets;
}

std::vector<BatchBox> loads_of(const Graph& graph, const Program& program, int domain) {
  std::vector<BatchBox> loads;
  for (const Instruction& instruction : program.instructions)
    if (const auto* load = std::get_if<Load>(&instruction);
        load && domain_of_input(graph, load->value) == domain)
      loads.push_back({field_of(graph, load->value), load->to.box});
  return loads;
}

}  // namespace tessera
