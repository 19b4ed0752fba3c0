#include "tessera/lower/bucket_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/graph/step_numbers.h"
#include "tessera/lower/channels.h"

namespace tessera {

void BucketWriter::set_up() {
  const StepPlan& step = writer_.step;
  for (size_t d = 0; d < writer_.graph.derivations().size(); ++d) derive(static_cast<int>(d));
  for (const Node& node : writer_.graph.nodes())
    if (node.op->is_loss() || (step.trains() && measures_gradient(node)))
      pending_losses_ += step.num_micro_batches();
  if (pending_losses_ > 0) {
    writer_.program.loss = writer_.add_buffer(
        "loss", BufferKind::kLoss, Box{{0, num_step_numbers(writer_.graph)}}, ElementType::kDouble);
    writer_.fill(writer_.program.loss);
  }
  if (!step.trains()) return;
  buffers_.assign(step.buckets.size(), -1);
  begun_.assign(step.buckets.size(), !step.options.zero_gradients);
  started_.assign(step.buckets.size(), false);
  pending_.assign(step.buckets.size(), 0);
  for (const Node& node : writer_.graph.nodes()) {
    if (!step.backward.needs_gradient[node.output] || !writer_.graph.has_trainable(node)) continue;
    for (ParameterId parameter : node.parameters) {
      if (const int bucket = step.bucket_of_parameter[parameter]; bucket >= 0)
        pending_[bucket] += step.num_micro_batches();
      if (const auto found = derivation_of_.find(parameter); found != derivation_of_.end())
        pending_uses_[found->second] += step.num_micro_batches();
    }
  }
  for (const auto& [derivation, uses] : pending_uses_)
    for (ParameterId source : writer_.graph.derivations()[derivation].sources)
      if (const int bucket = step.bucket_of_parameter[source]; bucket >= 0) ++pending_[bucket];
  for (size_t b = 0; b < step.buckets.size(); ++b)
    if (holds(step.buckets[b].holders, writer_.here.rank())) make_bucket(b);
}

bool BucketWriter::is_here(ParameterId parameter) const {
  return holds(writer_.step.holders[parameter], writer_.here.rank());
}

/// Computes the weight, and makes room for its gradient, which is turned into its sources' before
/// these are reduced: that is linear, so each rank may do it with its own part.
void BucketWriter::derive(int d) {
  const Derivation& derivation = writer_.graph.derivations()[d];
  derivation_of_[derivation.result] = d;
  if (!is_here(derivation.result)) return;
  Derive derive;
  derive.derivation = d;
  derive.result = writer_.weight(derivation.result).buffer;
  derive.trains = writer_.step.trains();
  for (ParameterId source : derivation.sources)
    derive.sources.push_back(writer_.weight(source).buffer);
  for (const WeightStep& step : derivation.steps)
    if (step.function == WeightFunction::kUpdate && derive.trains)
      derive.updated.push_back(derive.sources[step.numbers[0]]);
  writer_.append(derive);
  if (!derive.trains) return;
  const Parameter& parameter = writer_.graph.parameters()[derivation.result];
  const BufferId gradient = writer_.add_buffer(parameter.name + " gradient", BufferKind::kGradient,
                                               Box{{0, parameter.numel()}}, ElementType::kWide);
  writer_.fill(gradient);
  gradient_of_derived_[derivation.result] = writer_.whole(gradient);
}

void BucketWriter::derive_gradients(int d) {
  const Derivation& derivation = writer_.graph.derivations()[d];
  if (is_here(derivation.result)) {
    DeriveGradients derive;
    derive.derivation = d;
    derive.gradient = gradient_of_derived_.at(derivation.result);
    for (ParameterId source : derivation.sources)
      derive.gradients.push_back(gradient_of_.contains(source) ? gradient(source) : View{});
    writer_.append(derive);
  }
  for (ParameterId source : derivation.sources)
    if (const int bucket = writer_.step.bucket_of_parameter[source];
        bucket >= 0 && --pending_[bucket] == 0)
      start_bucket(bucket);
}

void BucketWriter::make_bucket(size_t b) {
  const BucketPlan& plan = writer_.step.buckets[b];
  const LowerOptions& options = writer_.step.options;
  Bucket bucket;
  bucket.holders = plan.holders;
  int64_t filled = 0;
  for (ParameterId id : plan.parameters) {
    bucket.parameters.push_back(id);
    bucket.offsets.push_back(filled);
    filled += writer_.graph.parameters()[id].numel();
  }
  const Box box{{0, filled}};
  bucket.buffer = writer_.add_buffer(
      fmt::format("bucket {}", b),
      options.accumulates() ? BufferKind::kAccumulatedBucket : BufferKind::kBucket, box,
      ElementType::kWide);
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const int64_t end = i + 1 < plan.parameters.size() ? bucket.offsets[i + 1] : filled;
    gradient_of_[plan.parameters[i]] = {bucket.buffer, Box{{bucket.offsets[i], end}}};
  }
  if (options.step == StepKind::kTrain) {
    for (int copy = 0; copy < options.optimiser.copies; ++copy)
      bucket.state.push_back(writer_.add_buffer(fmt::format("bucket {} state {}", b, copy),
                                                BufferKind::kOptimiserState, box,
                                                ElementType::kWide));
    if (options.optimiser.counters)
      bucket.counters =
          writer_.add_buffer(fmt::format("bucket {} steps", b), BufferKind::kOptimiserState,
                             Box{{0, std::ssize(plan.parameters)}}, ElementType::kDouble);
  }
  buffers_[b] = bucket.buffer;
  if (is_reduced(b)) reductions_.expect(plan.holders, filled);
  writer_.program.buckets.push_back(std::move(bucket));
}

/// Right before something is added to it: until then it takes no memory.
void BucketWriter::begin_bucket(size_t b) {
  if (begun_[b]) return;
  begun_[b] = true;
  if (buffers_[b] >= 0) writer_.fill(buffers_[b]);
}

View BucketWriter::gradient(ParameterId id) {
  if (gradient_of_.contains(id)) begin_bucket(writer_.step.bucket_of_parameter[id]);
  for (const auto* gradients : {&gradient_of_, &gradient_of_derived_})
    if (const auto found = gradients->find(id); found != gradients->end()) return found->second;
  const Parameter& parameter = writer_.graph.parameters()[id];
  const BufferId unused =
      writer_.add_buffer(parameter.name + " unused gradient", BufferKind::kScratch,
                         Box{{0, parameter.numel()}}, ElementType::kWide);
  writer_.fill(unused);
  return writer_.whole(unused);
}

void BucketWriter::contributed(const Node& node) {
  for (ParameterId parameter : node.parameters) {
    if (const int bucket = writer_.step.bucket_of_parameter[parameter];
        bucket >= 0 && --pending_[bucket] == 0)
      start_bucket(bucket);
    if (const auto found = derivation_of_.find(parameter);
        found != derivation_of_.end() && --pending_uses_[found->second] == 0)
      derive_gradients(found->second);
  }
}

bool BucketWriter::is_reduced(size_t b) const {
  return writer_.step.options.reduce_gradients && buffers_[b] >= 0 &&
         writer_.step.buckets[b].holders.size() > 1;
}

void BucketWriter::start_bucket(size_t b) {
  if (started_[b]) return;
  started_[b] = true;
  begin_bucket(b);
  if (is_reduced(b))
    reductions_.start(bucket_channel(writer_.placed, static_cast<int>(b)), buffers_[b],
                      writer_.step.buckets[b].holders);
}

void BucketWriter::input_gradient_ran(NodeId node, int m) {
  reductions_.input_gradient_ran(node, writer_.placed.ranks_of_node(node, m));
}

void BucketWriter::weight_gradient_ran(NodeId node, int m) {
  reductions_.weight_gradient_ran(node, writer_.placed.ranks_of_node(node, m));
}

bool BucketWriter::measures_gradient(const Node& node) const {
  return writer_.step.backward.needs_gradient[node.output] &&
         gradient_measurement(*node.op) != nullptr;
}

void BucketWriter::loss_added() {
  const int num_ranks = writer_.program.num_ranks;
  if (--pending_losses_ == 0 && num_ranks > 1)
    reductions_.start(loss_channel(writer_.placed), writer_.program.loss, everyone(num_ranks));
}

void BucketWriter::finish_step() {
  for (size_t b = 0; b < started_.size(); ++b) start_bucket(b);
  reductions_.finish_all();
  if (writer_.step.options.step == StepKind::kTrain) update();
}

std::vector<BufferId> BucketWriter::bucket_buffers() const {
  std::vector<BufferId> buffers;
  for (const Bucket& bucket : writer_.program.buckets) buffers.push_back(bucket.buffer);
  return buffers;
}

/// Every rank needs the norm of all gradients. A parameter's first holder counts it; where some
/// rank does not hold them all, the squares are summed over the ranks, one term of each of which is
/// not zero, so that the sum is exact.
void BucketWriter::update() {
  const StepPlan& step = writer_.step;
  Program& program = writer_.program;
  const int num_ranks = program.num_ranks;
  if (step.options.accumulated_steps > 1)
    writer_.append(ScaleGradients{bucket_buffers(),
                                  1.0 / static_cast<double>(step.options.accumulated_steps)});
  const bool all_hold_all = std::ranges::all_of(
      step.buckets, [&](const BucketPlan& b) { return std::ssize(b.holders) == num_ranks; });
  SquareGradients squares;
  squares.squares =
      writer_.add_buffer("squares of gradients", BufferKind::kStatistics,
                         Box{{0, std::ssize(writer_.graph.parameters())}}, ElementType::kDouble);
  for (const auto& [parameter, view] : gradient_of_)
    if (all_hold_all || step.holders[parameter].front() == program.rank)
      squares.gradients.push_back({view, parameter});
  writer_.append(squares);
  if (!all_hold_all) {
    reductions_.start(norm_channel(writer_.placed, static_cast<int>(step.buckets.size())),
                      squares.squares, everyone(num_ranks));
    reductions_.finish_all();
  }
  program.norm =
      writer_.add_buffer("gradient norm", BufferKind::kLoss, Box{{0, 1}}, ElementType::kDouble);
  writer_.append(Clip{squares.squares, program.norm, bucket_buffers(), step.options.clip_norm});
  Update update{program.loss, program.norm, {}, bucket_buffers(), {}};
  for (size_t i = 0; i < program.parameters.size(); ++i)
    if (gradient_of_.contains(program.parameters[i])) update.weights.push_back(program.weights[i]);
  for (const Bucket& bucket : program.buckets) {
    update.state.insert(update.state.end(), bucket.state.begin(), bucket.state.end());
    if (bucket.counters >= 0) update.state.push_back(bucket.counters);
  }
  writer_.append(std::move(update));
}

}  // namespace tessera
