#include "tessera/train/training_job.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/augment/layout_changes.h"
#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/data/domain_specs.h"
#include "tessera/data/open.h"
#include "tessera/graph/domains.h"
#include "tessera/graph/transform.h"
#include "tessera/lower/inference.h"
#include "tessera/train/configured.h"
#include "tessera/train/growing_cycles.h"
#include "tessera/train/run_length.h"
#include "tessera/train/serial_check.h"

namespace tessera {
namespace {

/// A data set has one target; outputs of other sizes share its labels.
const ValueType& target_type(const Graph& graph) {
  const size_t num_images = std::max<size_t>(image_inputs(graph).size(), 1);
  const size_t num_targets = graph.inputs().size() - num_images;
  if (num_targets < 1) throw_error<InvalidInput>("[train] the model has no loss");
  if (num_targets > 1)
    throw_error<InvalidInput>(
        "[train] the losses take {} targets, a data set has one; use labels, or outputs of one "
        "shape",
        num_targets);
  const auto is_target = [&](ValueId input) { return field_of(graph, input) == Field::kTargets; };
  return graph.type(*std::find_if(graph.inputs().begin(), graph.inputs().end(), is_target));
}

DomainSpec spec_of(const TrainConfig& config, const Graph& graph, int domain) {
  const int num_domains = std::max(1, static_cast<int>(image_inputs(graph).size()));
  return specs_of_domains(config.data, num_domains)[domain];
}

/// What is wrong with a target's data has its name in front, as that of the source has [data].
std::shared_ptr<const Dataset> open_domain(const TrainConfig& config, const Graph& graph,
                                           int domain) {
  const std::string spec = spec_of(config, graph, domain).spec;
  Shape sample = graph.type(domain == 0 ? graph.inputs()[0] : image_inputs(graph)[domain]).shape();
  sample.erase(sample.begin());
  // Domains that are made up differ.
  const uint64_t seed =
      domain == 0 ? config.seed : RandomKey(config.seed).with(domain_name(domain)).bits(0);
  return open_dataset(spec, sample, seed, num_classes(graph),
                      config.channels_last ? ChannelAxis::kLast : ChannelAxis::kFirst,
                      ImageSizes::kAny);
}

void check_labels(const Graph& graph, const ValueType& wanted, const Dataset& data) {
  const bool wants_pixels = wanted.num_axes() > 1;
  if (data.per_pixel() != wants_pixels)
    throw_error<InvalidInput>("[--data] the labels are per {}, the model wants them per {}",
                              data.per_pixel() ? "pixel" : "sample",
                              wants_pixels ? "pixel" : "sample");
  if (data.num_classes() > num_classes(graph))
    throw_error<InvalidInput>("[--data] {}, the model has {}; give it classes={}",
                              counted(data.num_classes(), "class", "classes"), num_classes(graph),
                              data.num_classes());
}

void check_data(const Graph& graph, const Dataset& data) {
  check_image_shape(graph, data);
  const ValueType& wanted = target_type(graph);
  const bool wants_labels = wanted.element == Element::kIndex;
  if (data.real_targets() == wants_labels)
    throw_error<InvalidInput>(
        "[--data] the targets are {}, the loss takes {}; use {}",
        data.real_targets() ? "numbers" : "labels", wants_labels ? "labels" : "numbers",
        wants_labels ? "integer targets (targets=labels in --data for files of whole "
                       "numbers with a point), or a loss such as mse"
                     : "float targets, or another --loss");
  if (wants_labels) check_labels(graph, wanted, data);
  Shape shape = wanted.shape();
  shape.erase(shape.begin());
  if (const Shape held = data.target_shape_of(0); held != shape)
    throw_error<InvalidInput>(
        "[--data] a sample's target is {}, the model's output takes {}; give targets of that size",
        to_string(held), to_string(shape));
}

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
  const Graph applied = for_inference(labelled_task(job->graph));
  job->validation = std::make_shared<const Lowering>(applied, job->plan, forward);
  lower_partial_validation(*job, applied, forward, &job->validation_set);
  for (TargetDomain& target : job->targets)
    if (target.validation.samples)
      lower_partial_validation(*job, applied, forward, &target.validation);
}

/// Empty where all are alike. A patch has the weight of its image, and there may be many more of
/// them than images.
std::vector<double> sampling_weights(const Dataset& images, const Dataset& patches) {
  bool differ = false;
  for (int64_t image = 1; image < images.size() && !differ; ++image)
    differ = images.weight_of(image) != images.weight_of(0);
  std::vector<double> weights;
  for (int64_t patch = 0; differ && patch < patches.size(); ++patch)
    weights.push_back(patches.weight_of(patch));
  return weights;
}

BatchPlan training_batches(const TrainingJob& job) {
  BatchPlanOptions options;
  options.num_samples = job.train_set->size();
  options.batch_size = job.graph.type(job.graph.inputs()[0]).batch();
  options.seed = job.config.seed;
  // Data of a program's own has no specification.
  if (!job.config.data.empty()) options.order = spec_of(job.config, job.graph, 0).order;
  // Batches of several domains are of different sizes already: all of them stay full.
  const bool drop_last = job.config.drop_last || image_inputs(job.graph).size() > 1;
  options.last = drop_last ? LastBatch::kDrop : LastBatch::kKeep;
  options.weights = sampling_weights(*job.images.train, *job.train_set);
  return BatchPlan(options);
}

/// From the images to what the network sees.
void prepare_data(TrainingJob* job) {
  const Shape input = job->graph.type(job->graph.inputs()[0]).shape();
  const Preparation preparation =
      preparation_of(job->config, Shape(input.begin() + 2, input.end()));
  const PreparedData data = prepared(job->images.train, job->images.validation, preparation);
  job->train_set = data.train;
  job->validation_set.samples = data.validation;
  job->intensities = data.intensities;
  check_data(job->graph, *job->train_set);
}

/// The names that --validate-targets gives, of the domains beside the source.
std::set<std::string> targets_to_validate(const TrainingJob& job) {
  const std::string& given = job.config.validate_targets;
  if (given.empty()) return {};
  std::vector<std::string> targets;
  for (int domain = 1; domain < std::ssize(image_inputs(job.graph)); ++domain)
    targets.push_back(domain_name(domain));
  if (targets.empty())
    throw_error<InvalidInput>(
        "[--validate-targets] the network reads the source alone; leave it out, or use a model for "
        "several domains, such as dsn:targets=2");
  if (!job.validation_set.samples)
    throw_error<InvalidInput>(
        "[--validate-targets] targets are validated when the source is, and that has no samples "
        "for it; give --validation-fraction 0.1, say");
  if (given == "all") return {targets.begin(), targets.end()};
  const std::vector<std::string> names = split_text(given, ',');
  for (const std::string& name : names)
    if (std::ranges::find(targets, name) == targets.end())
      throw_error<InvalidInput>(
          "[--validate-targets] \"{}\" is not a target; use all, or some of {}", name,
          joined(targets, ","));
  return {names.begin(), names.end()};
}

void check_scored(const TrainingJob& job, const std::string& name, const Dataset& images) {
  if (!images.has_targets())
    throw_error<InvalidInput>(
        "[--validate-targets] {} has no labels to be scored by; give its data labels, or name "
        "other domains in --validate-targets",
        name);
  check_data(job.graph, images);
}

/// The images of a domain beside the source, prepared as the source's are, by themselves.
TargetDomain open_target(const TrainingJob& job, int domain, bool is_scored) {
  const std::string name = domain_name(domain);
  const Shape input = job.graph.type(image_inputs(job.graph)[domain]).shape();
  const auto opened = open_domain(job.config, job.graph, domain);
  const DatasetSplit split = is_scored ? split_for_training(job.config, opened)
                                       : split_dataset(opened, 0, job.config.seed);
  const Preparation preparation = preparation_of(job.config, Shape(input.begin() + 2, input.end()));
  const PreparedData data =
      prepared(split.train, is_scored ? split.validation : nullptr, preparation);
  check_images_fit(Shape(input.begin() + 1, input.end()), *data.train);
  if (is_scored) check_scored(job, name, *data.validation);
  BatchPlanOptions options;
  options.num_samples = data.train->size();
  options.batch_size = input[0];
  options.seed = RandomKey(job.config.seed).with(name).bits(1);
  options.order = spec_of(job.config, job.graph, domain).order;
  return {data.train, BatchPlan(options), {data.validation, nullptr}};
}

void open_targets(TrainingJob* job) {
  const std::set<std::string> scored = targets_to_validate(*job);
  for (int domain = 1; domain < std::ssize(image_inputs(job->graph)); ++domain) {
    const std::string name = domain_name(domain);
    try {
      job->targets.push_back(open_target(*job, domain, scored.count(name) > 0));
    } catch (const InvalidInput& error) {
      throw_error<InvalidInput>("[--data] {}: {}", name, error.what());
    }
  }
}

void set_length(TrainingJob* job) {
  std::vector<BatchPlan> targets;
  for (const TargetDomain& target : job->targets) targets.push_back(target.batches);
  const RunLength length = run_length(job->config, *job->batches, targets);
  job->steps_per_epoch = length.steps_per_epoch;
  job->total_steps = length.steps;
}

}  // namespace

void check_image_shape(const Graph& graph, const Dataset& data) {
  const Shape input = graph.type(graph.inputs()[0]).shape();
  check_images_fit(Shape(input.begin() + 1, input.end()), data);
}

void check_images_fit(const Shape& wanted, const Dataset& data) {
  if (data.image_shape() == wanted) return;
  if (!data.image_shape().empty())
    throw_error<InvalidInput>(
        "[data] an image is {}, the network takes {}; give --input that size, cut patches by "
        "--crop, or give other images",
        to_string(data.image_shape()), to_string(wanted));
  int64_t other = 0;
  while (data.image_shape_of(other) == data.image_shape_of(0)) ++other;
  throw_error<InvalidInput>(
      "[data] the images have different sizes, {} is {} and {} is {}, and the network takes {}; "
      "cut patches by --crop, or give all images one size",
      data.name_of(0), to_string(data.image_shape_of(0)), data.name_of(other),
      to_string(data.image_shape_of(other)), to_string(wanted));
}

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

Preparation preparation_of(const TrainConfig& config, const Shape& network) {
  Preparation made;
  made.normalise = parse_normalisation(config.normalise);
  made.to_ras = config.orientation == "ras";
  if (!config.spacing.empty()) made.spacing = parse_spacing(config.spacing);
  if (!config.crop.empty()) made.crop = parse_sizes(config.crop, "--crop");
  made.centres = parse_crop_centres(config.crop_centres);
  made.fill = config.crop_fill;
  made.patches_per_image = config.patches_per_image;
  made.augmentation = parse_augmentation(config.augment);
  made.network = network;
  made.seed = config.seed;
  return made;
}

std::shared_ptr<const Dataset> open_training_data(const TrainConfig& config, const Graph& graph) {
  if (config.data.empty())
    throw_error<InvalidInput>(
        "[--data] there is nothing to train on; give images and targets, --data folder:PATH or "
        "--data files:images.npy,targets.npy, or let some be made up, --data "
        "synthetic:samples=64,classes={}",
        num_classes(graph));
  return open_domain(config, graph, 0);
}

DatasetSplit split_for_training(const TrainConfig& config, std::shared_ptr<const Dataset> data) {
  return split_dataset(std::move(data), config.validation_fraction, config.seed,
                       parse_fold(config.fold));
}

TrainingJob prepare_training(const TrainConfig& config, const Graph& graph, const Plan& plan,
                             at::ScalarType real, std::shared_ptr<const Dataset> data) {
  if (graph.num_trainable() == 0)
    throw_error<InvalidInput>("[train] the model has no parameter to train");
  TrainingJob job;
  job.config = config;
  job.graph = graph;
  job.plan = plan;
  job.real = real;
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
                               at::ScalarType real, std::shared_ptr<const Dataset> data) {
  TrainingJob job;
  job.config = config;
  job.graph = labelled_task(graph);
  job.plan = plan;
  job.real = real;
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
