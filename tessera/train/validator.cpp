#include "tessera/train/validator.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

at::Tensor class_scores(const at::Tensor& logits) {
  return logits.size(1) > 1 ? logits : at::cat({at::zeros_like(logits), logits}, 1);
}

}  // namespace

void sum_over_ranks(std::vector<double>* numbers, Transport& transport) {
  AllReduce sum(transport, everyone(transport.size()), numbers->data(),
                static_cast<int64_t>(numbers->size()), SumType::kFloat64);
  sum.finish();
}

Validator::Validator(const TrainingJob& job, const ValidationSet& set, ParameterStore* parameters,
                     Transport* transport)
    : job_(job),
      set_(set),
      loader_(job.validation_loader(set)),
      names_(scores_of(scored_task(*set.samples), num_classes(job.validation->graph()))),
      transport_(transport),
      executor_(job.validation->graph(), job.validation->program(transport->rank()), parameters,
                transport, {job.real}) {
  if (set.partial)
    partial_executor_.emplace(set.partial->graph(), set.partial->program(transport->rank()),
                              parameters, transport, ExecutorOptions{job.real});
}

Executor& Validator::executor_of(int64_t batch) {
  const BatchPlan& plan = loader_.plan();
  return plan.size_of(batch) < plan.batch_size() ? *partial_executor_ : executor_;
}

bool Validator::counts_top5() const {
  for (const ScoreName& name : names_)
    if (name.value == &Scores::top5) return true;
  return false;
}

/// The rank's own pixels of one batch, after a forward pass.
void Validator::count_batch(int64_t batch, ConfusionCounts* counts, int64_t* top5_hits) {
  const Graph& graph = job_.validation->graph();
  for (const Result& output : executor_.program().outputs) {
    if (output.value != graph.outputs()[0]) continue;
    const Box labels_box = without_axis(output.view.box, 1);
    at::Tensor labels = at::empty(labels_box.shape(), at::kLong);
    loader_.load({Field::kTargets, labels_box}, batch, labels);
    const at::Tensor logits = class_scores(executor_.result(output));
    counts->add_logits(logits, labels, kIgnoreLabel);
    if (counts_top5()) *top5_hits += count_among_largest(logits, labels, kIgnoreLabel, 5);
  }
}

/// The batch's loss; the outputs stay in the executor.
double Validator::run_batch(int64_t batch) {
  Executor& executor = executor_of(batch);
  const Graph& graph = (&executor == &executor_ ? job_.validation : set_.partial)->graph();
  StepContext context;
  context.seed = job_.config.seed;
  context.load = [&](ValueId input, const Box& box, at::Tensor target) {
    loader_.load({field_of(graph, input), box}, batch, target);
  };
  executor.run(context);
  return executor.loss();
}

/// A batch's loss is the mean over its samples.
ValidationResult Validator::mean_loss() {
  const BatchPlan& plan = loader_.plan();
  double sum = 0, samples = 0;
  for (int64_t batch = 0; batch < plan.batches_per_epoch(); ++batch) {
    const auto size = static_cast<double>(plan.size_of(batch));
    sum += size * run_batch(batch);
    samples += size;
  }
  ValidationResult result;
  result.loss = sum / samples;
  result.weight = samples;
  return result;
}

ValidationResult Validator::run() {
  if (loader_.is_real(Field::kTargets)) return mean_loss();
  ValidationResult result;
  result.names = names_;
  result.counts.emplace(num_classes(job_.validation->graph()));
  double loss_sum = 0;
  for (int64_t batch = 0; batch < loader_.plan().batches_per_epoch(); ++batch) {
    const double loss = run_batch(batch);
    ConfusionCounts counts(result.counts->num_classes());
    int64_t top5_hits = 0;
    count_batch(batch, &counts, &top5_hits);
    std::vector<double> numbers = counts.as_doubles();
    numbers.push_back(static_cast<double>(top5_hits));
    sum_over_ranks(&numbers, *transport_);
    result.top5_hits += static_cast<int64_t>(numbers.back());
    numbers.pop_back();
    counts.assign(numbers);
    result.counts->add(counts);
    // A batch's loss is the mean over its labels; one without labels has none.
    const double weight = static_cast<double>(counts.total());
    if (weight > 0) loss_sum += weight * loss;
    result.weight += weight;
  }
  result.loss = result.weight > 0 ? loss_sum / result.weight : NAN;
  result.scores =
      scores(*result.counts, counts_top5() ? std::optional(result.top5_hits) : std::nullopt);
  return result;
}

std::string to_string(const ValidationResult& result) {
  std::vector<std::string> parts;
  if (result.has_loss)
    parts.push_back(result.names.empty() ? fmt::format("loss {:.6g}", result.loss)
                                         : fmt::format("loss {:.4f}", result.loss));
  for (const ScoreName& name : result.names)
    parts.push_back(fmt::format("{} {:.3f}", name.words, result.scores.*name.value));
  return joined(parts);
}

}  // namespace tessera
