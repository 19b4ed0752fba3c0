#include "tessera/train/training_data.h"

#include <algorithm>
#include <set>

#include "tessera/augment/layout_changes.h"
#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/data/domain_specs.h"
#include "tessera/data/open.h"
#include "tessera/graph/domains.h"

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

}  // namespace tessera
