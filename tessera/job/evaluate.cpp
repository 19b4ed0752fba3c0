#include "tessera/job/evaluate.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/comm/together.h"
#include "tessera/data/subset.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/choose_device.h"
#include "tessera/job/class_weights.h"
#include "tessera/job/forecast.h"
#include "tessera/job/image_predictor.h"
#include "tessera/job/sized_job.h"

namespace tessera {
namespace {

/// What the samples of one size give.
struct OfSize {
  ValidationResult result;
  MeanSurfaceScores surfaces;
};

/// How the samples of one size are evaluated.
struct Evaluated {
  const Job& job;
  const AppliedData& data;
  const EvaluateRequest& request;
  std::vector<ImageWindow> windows = {};
  std::optional<TrainingJob> validation = {};  // none: without a loss
  std::optional<Lowering> prediction = {};     // for what the validation does not give
  bool compares_surfaces = false;

  /// Whether scores come of predictions.
  bool counts_boxes() const { return !validation || data.comes_back(job.graph()); }
  /// In the grid of the predictions.
  const Dataset& truth() const { return data.comes_back(job.graph()) ? *data.own : *data.seen; }
};

bool are_masks(ScoredTask task, const Job& job) {
  return task == ScoredTask::kPixelClasses &&
         job.graph().type(job.graph().outputs()[0]).num_spatial() > 0;
}

std::string evaluation_scratch(const EvaluateRequest& request) {
  const std::filesystem::path folder = request.scratch_folder.empty()
                                           ? std::filesystem::temp_directory_path()
                                           : std::filesystem::path(request.scratch_folder);
  return folder / fmt::format("tessera-evaluation-{}", ::getpid());
}

/// Counts the pixels of a box, batch x channels x space of a prediction.
void count_box(const Evaluated& evaluated, int64_t first_sample, const Box& box,
               const at::Tensor& classes, ConfusionCounts* counts) {
  const Dataset& truth = evaluated.truth();
  const Box space = without_axis(without_axis(box, 0), 0);
  const at::Tensor labels = at::empty(space.shape(), at::kLong);
  for (int64_t entry = box[0].begin; entry < box[0].end; ++entry) {
    if (first_sample + entry >= truth.size()) return;
    truth.load_target(first_sample + entry, space, labels);
    counts->add_predictions(classes[entry - box[0].begin], labels, kIgnoreLabel);
  }
}

/// Predicts all samples: each rank counts its own boxes, rank 0 compares whole masks.
void score_predictions(const Evaluated& evaluated, ParameterStore* parameters, Transport& transport,
                       ConfusionCounts* counts, MeanSurfaceScores* surfaces) {
  const Job& job = evaluated.job;
  const Dataset& truth = evaluated.truth();
  ImagePredictor predictor(job, *evaluated.prediction, evaluated.data,
                           {.windows = evaluated.windows,
                            .classes = true,
                            .scratch = evaluation_scratch(evaluated.request)},
                           parameters, &transport);
  SurfaceOptions options;
  options.num_classes = num_classes(job.graph());
  options.tolerance = evaluated.request.tolerance;
  options.ignored = kIgnoreLabel;
  const auto count = [&](int64_t batch, const Box& box, const PredictedBox& predicted) {
    if (evaluated.counts_boxes())
      count_box(evaluated, batch * predictor.batch_size(), box, predictor.classes_of(predicted),
                counts);
  };
  const auto compare = [&](int64_t sample, const at::Tensor& classes) {
    const at::Tensor labels = at::empty(classes.sizes(), at::kLong);
    truth.load_target(sample, Box::whole(truth.target_shape_of(sample)), labels);
    options.spacing = truth.frame_of(sample).spacing;
    if (options.spacing.size() != static_cast<size_t>(labels.dim())) options.spacing.clear();
    surfaces->add(surface_scores(classes, labels, options));
  };
  for (int64_t batch = 0; batch < predictor.num_batches(); ++batch) {
    if (evaluated.compares_surfaces)
      predictor.run_batch_with_maps(batch, count, compare);
    else
      predictor.run_batch(batch, count);
  }
  std::vector<double> numbers = counts->as_doubles();
  sum_over_ranks(&numbers, transport);
  counts->assign(numbers);
}

/// A loss whose class weights were counted takes those that the run has counted.
Graph with_recorded_weights(const Job& job, const TrainConfig& config, const std::string& weights) {
  if (!asks_for_class_weights(config.loss)) return job.graph();
  const std::vector<double> recorded = recorded_class_weights(weights);
  return recorded.empty() ? job.graph() : with_class_weights(job.graph(), config, recorded);
}

OfSize run_evaluation(const Evaluated& evaluated) {
  const Job& job = evaluated.job;
  OfSize result;
  run_on_ranks(job.plan.num_ranks(), job.launch, [&](Transport& transport) {
    const Lowering& lowering =
        evaluated.validation ? *evaluated.validation->validation : *evaluated.prediction;
    const std::unique_ptr<Device> device = open_rank_device(job, transport);
    ParameterStore parameters(job.graph(), lowering.program(transport.rank()).parameters, job.seed,
                              job.real, *device);
    do_together(transport, [&] {
      load_applied_weights(evaluated.request.weights, job.model, parameters.values());
    });
    ValidationResult own;
    if (evaluated.validation) {
      own = Validator(*evaluated.validation, evaluated.validation->validation_set, &parameters,
                      &transport)
                .run();
    } else {
      own.names = scores_of(ScoredTask::kPixelClasses, num_classes(job.graph()));
      own.has_loss = false;
    }
    if (evaluated.prediction) {
      ConfusionCounts counts(num_classes(job.graph()));
      score_predictions(evaluated, &parameters, transport, &counts, &result.surfaces);
      if (evaluated.counts_boxes()) {
        own.scores = scores(counts);
        own.counts = counts;
      }
    }
    if (transport.rank() == 0) result.result = own;
  });
  return result;
}

/// Empty where the validation fits.
std::string shortage_of(const Job& job, const TrainingJob& validation) {
  try {
    forecast_within_limits(job, *validation.validation, where_ranks_live(job));
    return {};
  } catch (const OutOfMemory& error) {
    return error.what();
  }
}

/// Adds what other samples gave, as if all had been one set.
void add_result(const ValidationResult& other, ValidationResult* sum) {
  if (!sum->counts && sum->weight == 0) {
    *sum = other;
    return;
  }
  const double weight = sum->weight + other.weight;
  if (other.weight > 0)
    sum->loss =
        ((sum->weight > 0 ? sum->weight * sum->loss : 0) + other.weight * other.loss) / weight;
  sum->has_loss = sum->has_loss && other.has_loss;
  sum->weight = weight;
  sum->top5_hits += other.top5_hits;
  if (!other.counts) return;
  sum->counts->add(*other.counts);
  const bool has_top5 = !std::isnan(sum->scores.top5) || !std::isnan(other.scores.top5);
  sum->scores = scores(*sum->counts, has_top5 ? std::optional(sum->top5_hits) : std::nullopt);
}

/// Evaluates the samples of one size and notes what is left out.
OfSize evaluate_size(const TrainConfig& config, const Job& own, const AppliedData& data,
                     const EvaluateRequest& request, Evaluation* evaluation) {
  const Shape image = data.seen->image_shape_of(0);
  const Job whole = job_for_size(config, own, image);
  const bool masks = are_masks(evaluation->task, whole);
  TrainingJob validation =
      prepare_evaluation(config, with_recorded_weights(whole, config, request.weights), whole.plan,
                         whole.numbers(), data.seen);
  const bool is_whole = is_within(image, request.window);
  if (!is_whole && !masks)
    throw_error<InvalidInput>("[--window] is for masks with a class for each pixel; leave it out");
  const std::string reason =
      is_whole ? shortage_of(whole, validation) : "images are seen by windows, as --window says";
  if (!reason.empty() && !masks) throw_error<OutOfMemory>("{}", reason);
  const WindowedJob sized = reason.empty()
                                ? WindowedJob{whole, {}}
                                : prediction_for_size(config, own, image, request.window);
  Evaluated evaluated{sized.job, data, request};
  evaluated.windows = sized.windows;
  if (reason.empty())
    evaluated.validation = std::move(validation);
  else
    evaluation->without_loss = reason;
  evaluation->came_back = data.comes_back(whole.graph());
  if (masks) {
    Shape space = result_shape(sized.job, data, sized.windows);
    space.erase(space.begin());
    if (Box::whole(space).volume() > kMostLabelsHeld)
      evaluation->without_surfaces =
          fmt::format("a mask of {} is larger than the {} pixels that one worker compares",
                      to_string(space), kMostLabelsHeld);
    evaluated.compares_surfaces = evaluation->without_surfaces.empty();
    if (evaluated.compares_surfaces || evaluated.counts_boxes())
      evaluated.prediction.emplace(
          lower_prediction(sized.job.graph(), sized.job.plan, sized.job.numbers()));
  }
  return run_evaluation(evaluated);
}

}  // namespace

Evaluation evaluate(const Job& own, const TrainConfig& config, const AppliedData& data,
                    const EvaluateRequest& request) {
  if (!data.seen->has_targets())
    throw_error<InvalidInput>(
        "[--data] the images have no targets to compare with; give them, too");
  if (request.weights.empty() && !own.model.has_weights)
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  Evaluation evaluation;
  evaluation.task = scored_task(*data.seen);
  const AppliedData scored = data.of(samples_with_targets(*data.seen));
  evaluation.samples = scored.seen->size();
  evaluation.class_names = data.seen->class_names();
  MeanSurfaceScores surfaces;
  for (const SizeGroup& group : groups_by_size(scored)) {
    const OfSize result =
        evaluate_size(config, own, scored.of(group.samples), request, &evaluation);
    add_result(result.result, &evaluation.result);
    surfaces.add(result.surfaces);
  }
  if (!evaluation.result.has_loss) evaluation.result.loss = NAN;
  if (evaluation.without_surfaces.empty()) evaluation.surfaces = surfaces.means();
  return evaluation;
}

Evaluation evaluate(const TrainConfig& config, const AppliedData& data,
                    const EvaluateRequest& request) {
  return evaluate(resolve_job(config), config, data, request);
}

Evaluation evaluate(const TrainConfig& config, const Dataset& data,
                    const EvaluateRequest& request) {
  return evaluate(config, AppliedData::as_it_is(data), request);
}

}  // namespace tessera
