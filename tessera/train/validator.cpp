#include "tessera/train/validator.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

at::Tensor class_scores(const at::Tensor& logits) {
  return logits.size(1) > 1 ? logits : at::cat({at::zeros_like(logits), logits}, 1);
}

}  // namespace

Validator::Validator(const TrainingJob& job, ParameterStore* parameters, Transport* transport)
    : job_(job),
      loader_(job.validation_loader()),
      transport_(transport),
      executor_(job.validation->graph(), job.validation->program(transport->rank()), parameters,
                transport, {job.real}) {
  if (job.partial_validation)
    partial_executor_.emplace(job.partial_validation->graph(),
                              job.partial_validation->program(transport->rank()), parameters,
                              transport, ExecutorOptions{job.real});
}

Executor& Validator::executor_of(int64_t batch) {
  const BatchPlan& plan = loader_.plan();
  return plan.size_of(batch) < plan.batch_size() ? *partial_executor_ : executor_;
}

void Validator::sum_over_ranks(std::vector<double>* numbers) {
  AllReduce sum(*transport_, everyone(transport_->size()), numbers->data(),
                static_cast<int64_t>(numbers->size()), SumType::kFloat64);
  sum.finish();
}

/// The rank's own pixels of one batch, after a forward pass.
ConfusionCounts Validator::count_batch(int64_t batch) {
  const Graph& graph = job_.validation->graph();
  ConfusionCounts counts(num_classes(graph));
  for (const Result& output : executor_.program().outputs) {
    if (output.value != graph.outputs()[0]) continue;
    Box labels_box = output.view.box;  // without the classes
    std::vector<Range> ranges;
    for (int axis = 0; axis < labels_box.num_axes(); ++axis)
      if (axis != 1) ranges.push_back(labels_box[axis]);
    labels_box = Box(ranges);
    at::Tensor labels = at::empty(labels_box.shape(), at::kLong);
    loader_.load({Field::kTargets, labels_box}, batch, labels);
    counts.add_logits(class_scores(executor_.result(output)), labels, kIgnoreLabel);
  }
  return counts;
}

/// The batch's loss; the outputs stay in the executor.
double Validator::run_batch(int64_t batch) {
  Executor& executor = executor_of(batch);
  const Graph& graph =
      (&executor == &executor_ ? job_.validation : job_.partial_validation)->graph();
  StepContext context;
  context.seed = job_.config.seed;
  context.load = [&](ValueId input, const Box& box, at::Tensor target) {
    loader_.load({field_of(graph, input), box}, batch, target);
  };
  executor.run(context);
  return executor.loss();
}

/// A batch's loss is the mean over its samples.
double Validator::mean_loss() {
  const BatchPlan& plan = loader_.plan();
  double sum = 0, samples = 0;
  for (int64_t batch = 0; batch < plan.batches_per_epoch(); ++batch) {
    const auto size = static_cast<double>(plan.size_of(batch));
    sum += size * run_batch(batch);
    samples += size;
  }
  executor_.release();
  if (partial_executor_) partial_executor_->release();
  return sum / samples;
}

ValidationResult Validator::run() {
  if (loader_.is_real(Field::kTargets)) return {mean_loss(), false, {NAN, NAN, NAN, {}, {}}};
  ConfusionCounts all(num_classes(job_.validation->graph()));
  double loss_sum = 0, weight_sum = 0;
  for (int64_t batch = 0; batch < loader_.plan().batches_per_epoch(); ++batch) {
    const double loss = run_batch(batch);
    ConfusionCounts counts = count_batch(batch);
    std::vector<double> numbers = counts.as_doubles();
    sum_over_ranks(&numbers);
    counts.assign(numbers);
    all.add(counts);
    // A batch's loss is the mean over its labels; one without labels has none.
    const double weight = static_cast<double>(counts.total());
    if (weight > 0) loss_sum += weight * loss;
    weight_sum += weight;
  }
  executor_.release();  // the logits would stay beside the next training steps
  return {weight_sum > 0 ? loss_sum / weight_sum : NAN, true, scores(all)};
}

std::string to_string(const ValidationResult& result) {
  if (!result.has_scores) return fmt::format("loss {:.6g}", result.loss);
  return fmt::format("loss {:.4f}, accuracy {:.3f}, mean IoU {:.3f}, Dice {:.3f}", result.loss,
                     result.scores.accuracy, result.scores.mean_iou, result.scores.mean_dice);
}

}  // namespace tessera
