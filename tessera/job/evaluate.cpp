#include "tessera/job/evaluate.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/comm/together.h"
#include "tessera/data/subset.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/class_weights.h"
#include "tessera/job/forecast.h"
#include "tessera/job/sized_job.h"
#include "tessera/train/label_maps.h"

namespace tessera {
namespace {

/// What the samples of one size give.
struct OfSize {
  ValidationResult result;
  MeanSurfaceScores surfaces;
};

bool has_surfaces(ScoredTask task, const Job& job) {
  return task == ScoredTask::kPixelClasses &&
         job.graph().type(job.graph().outputs()[0]).num_spatial() > 0;
}

Shape output_space(const Graph& graph) {
  const Shape shape = graph.type(graph.outputs()[0]).shape();
  return Shape(shape.begin() + 2, shape.end());
}

/// Predicts all samples once more; rank 0 compares their whole masks.
void compare_surfaces(const Job& job, const Lowering& lowering, const Dataset& data,
                      double tolerance, ParameterStore* parameters, Transport& transport,
                      MeanSurfaceScores* surfaces) {
  Predictor predictor(lowering, lowering.program(transport.rank()), parameters, &transport,
                      job.real);
  SurfaceOptions options;
  options.num_classes = num_classes(job.graph());
  options.tolerance = tolerance;
  options.ignored = kIgnoreLabel;
  for (int64_t batch = 0; batch < predictor.num_batches(data); ++batch)
    predict_label_maps(
        predictor, data, batch, {}, output_space(job.graph()),
        [](int64_t, const Box&, const PredictedBox&) {},
        [&](int64_t sample, const at::Tensor& classes) {
          const at::Tensor truth = at::empty(classes.sizes(), at::kLong);
          data.load_target(sample, Box::whole(data.target_shape_of(sample)), truth);
          options.spacing = data.frame_of(sample).spacing;
          if (options.spacing.size() != static_cast<size_t>(truth.dim())) options.spacing.clear();
          surfaces->add(surface_scores(classes, truth, options));
        });
}

/// A loss whose class weights were counted takes those that the run has counted.
Graph with_recorded_weights(const Job& job, const TrainConfig& config, const std::string& weights) {
  if (config.loss.find("class_weights=auto") == std::string::npos) return job.graph();
  const std::vector<double> recorded = recorded_class_weights(weights);
  return recorded.empty() ? job.graph() : with_class_weights(job.graph(), config, recorded);
}

OfSize evaluate_size(const Job& job, const TrainConfig& config,
                     const std::shared_ptr<const Subset>& samples, const EvaluateRequest& request,
                     bool surfaces) {
  const TrainingJob prepared = prepare_evaluation(
      config, with_recorded_weights(job, config, request.weights), job.plan, job.real, samples);
  const Where where = where_ranks_live(job);
  forecast_within_limits(job, *prepared.validation, where);
  std::optional<Lowering> prediction;
  if (surfaces) prediction.emplace(lower_prediction(job.graph(), job.plan, job.real));
  OfSize result;
  run_on_ranks(job.plan.num_ranks(), job.launch, [&](Transport& transport) {
    ParameterStore parameters(
        job.graph(), prepared.validation->program(transport.rank()).parameters, job.seed, job.real);
    do_together(transport,
                [&] { load_applied_weights(request.weights, job.model, parameters.values()); });
    const bool is_first = transport.rank() == 0;
    {
      const ValidationResult own = Validator(prepared, &parameters, &transport).run();
      if (is_first) result.result = own;
    }
    if (surfaces)
      compare_surfaces(job, *prediction, *samples, request.tolerance, &parameters, transport,
                       &result.surfaces);
  });
  return result;
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
  sum->weight = weight;
  sum->top5_hits += other.top5_hits;
  if (!other.counts) return;
  sum->counts->add(*other.counts);
  const bool has_top5 = !std::isnan(sum->scores.top5) || !std::isnan(other.scores.top5);
  sum->scores = scores(*sum->counts, has_top5 ? std::optional(sum->top5_hits) : std::nullopt);
}

}  // namespace

Evaluation evaluate(const TrainConfig& config, const Dataset& data,
                    const EvaluateRequest& request) {
  if (!data.has_targets())
    throw_error<InvalidInput>(
        "[--data] the images have no targets to compare with; give them, too");
  const Job own = resolve_job(config);
  if (request.weights.empty() && own.model.file.empty())
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  Evaluation evaluation;
  evaluation.task = scored_task(data);
  MeanSurfaceScores surfaces;
  // Samples for tests may lack what the others have.
  const std::shared_ptr<const Dataset> all = with_targets({&data, [](const Dataset*) {}});
  evaluation.samples = all->size();
  for (const SizeGroup& group : groups_by_size(*all)) {
    const Job job = job_for_size(config, own, group.image_shape);
    const Shape space = has_surfaces(evaluation.task, job) ? output_space(job.graph()) : Shape{};
    if (!space.empty() && Box::whole(space).volume() > kMostLabelsHeld)
      evaluation.without_surfaces =
          fmt::format("a mask of {} is larger than the {} pixels that one worker compares",
                      to_string(space), kMostLabelsHeld);
    const bool compared = !space.empty() && evaluation.without_surfaces.empty();
    OfSize result =
        evaluate_size(job, config, std::make_shared<Subset>(all, group.samples), request, compared);
    add_result(result.result, &evaluation.result);
    surfaces.add(result.surfaces);
  }
  if (evaluation.without_surfaces.empty()) evaluation.surfaces = surfaces.means();
  return evaluation;
}

}  // namespace tessera
