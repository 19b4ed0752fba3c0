#include "tessera/runtime/executor.h"

#include <c10/core/InferenceMode.h>

#include "tessera/base/error.h"
#include "tessera/graph/number_type.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/messages_agree.h"
#include "tessera/runtime/vector_math.h"

namespace tessera {

Executor::Executor(const Graph& graph, Program program, ParameterStore* parameters,
                   Transport* transport, const ExecutorOptions& options)
    : graph_(graph),
      program_(std::move(program)),
      parameters_(parameters),
      transport_(transport),
      options_(options),
      device_(parameters->device()),
      layout_(lay_out(program_, options.real)),
      placed_(program_.buffers.size()),
      tensors_(program_.buffers.size()) {
  TESSERA_CHECK(transport->rank() == program_.rank && transport->size() == program_.num_ranks,
                "the program of rank {}/{} on rank {}/{}", program_.rank, program_.num_ranks,
                transport->rank(), transport->size());
  const int64_t num_nodes = std::ssize(graph.nodes());
  const auto words = at::TensorOptions(device_.place()).dtype(at::kLong);
  const bool is_host = device_.place().is_cpu();
  if (!is_host) illegal_labels_ = at::zeros({num_nodes}, words);
  if (!is_host || device_.can_record()) {
    keys_ = at::zeros({num_nodes}, words);
    keys_on_host_ = device_.on_host({num_nodes}, at::kLong);
  }
  settle_vector_math();
  records_ = can_be_recorded();
  parameters_->make_buckets(program_);
  if (program_.num_ranks > kMostRanksProved) check_messages_agree(*transport, program_);
}

void Executor::run(const StepContext& context) {
  c10::InferenceMode no_autograd;
  AccountScope book_here(&account_);
  context_ = &context;
  memory_ = {};
  value_bytes_ = reduction_bytes_ = scratch_bytes_ = 0;
  derivations_.clear();
  std::fill(tensors_.begin(), tensors_.end(), at::Tensor());
  const bool other_step = parameters_->arena().hand_to(this);
  const bool other_block = bind_arena();
  if (other_block) recorded_.reset();
  bind_permanent();
  if (other_step || other_block) show_gradients();
  device_.reset_peak();
  const int64_t live_before = device_.live_bytes();
  if (illegal_labels_.defined()) illegal_labels_.zero_();
  draw_keys();
  execute_all(begin_recorded(), context.trace);
  context_ = nullptr;
  if (DeviceQueue* queue = device_.queue(Stream::kCompute)) queue->drain();
  refuse_labels();
  memory_.peak_workspace_bytes =
      std::max(memory_.peak_workspace_bytes, device_.peak_bytes() - live_before);
}

/// Of all nodes at once, so that what is recorded finds them where it has found the last step's.
void Executor::draw_keys() {
  if (!keys_.defined()) return;
  auto keys = keys_on_host_.accessor<int64_t, 1>();
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id)
    keys[id] = static_cast<int64_t>(
        random_key(context_->seed, graph_.node(id).name, context_->step).state());
  keys_.copy_(keys_on_host_, /*non_blocking=*/true);
}

void Executor::execute(const Instruction& instruction) {
  std::visit([this](const auto& each) { execute(each); }, instruction);
}

void Executor::execute_all(size_t begin, TraceRecorder* trace) {
  if (trace != nullptr)
    if (const std::unique_ptr<DeviceTimer> timer = device_.timer())
      return execute_on_timer(trace, timer.get());
  for (size_t i = begin; i < program_.instructions.size(); ++i)
    traced(trace, program_.instructions[i], [&] { execute(program_.instructions[i]); });
}

/// Times of the device, counted from now.
void Executor::execute_on_timer(TraceRecorder* trace, DeviceTimer* timer) {
  std::vector<const Instruction*> watched;
  const TraceRecorder::Clock::time_point now = TraceRecorder::Clock::now();
  timer->mark();
  for (const Instruction& instruction : program_.instructions) {
    const bool is_watched = trace->watches(instruction);
    if (is_watched) timer->mark();
    execute(instruction);
    if (!is_watched) continue;
    timer->mark();
    watched.push_back(&instruction);
  }
  const std::vector<double> seconds = timer->seconds();
  const auto time = [&](size_t mark) {
    return now + std::chrono::duration_cast<TraceRecorder::Clock::duration>(
                     std::chrono::duration<double>(seconds[mark]));
  };
  for (size_t i = 0; i < watched.size(); ++i)
    trace->record(*watched[i], time(2 * i + 1), time(2 * i + 2));
}

/// Kernels of a device leave labels that are not legal behind, and a loss that is NaN, so that no
/// rank has updated anything.
void Executor::refuse_labels() const {
  if (!illegal_labels_.defined()) return;
  const at::Tensor labels = illegal_labels_.cpu();
  for (const Node& node : graph_.nodes()) {
    const int64_t label = labels.data_ptr<int64_t>()[&node - graph_.nodes().data()];
    node.op->refuse_label(label, node.name, node.types);
  }
}

double Executor::loss() const {
  if (program_.loss < 0)
    throw_error<InvalidInput>(
        "[loss] the graph has none; put one on its outputs with add_losses()");
  TESSERA_CHECK(tensors_[program_.loss].defined(), "there is no loss before the first step");
  return number(program_.loss);
}

std::vector<double> Executor::measured() const {
  if (program_.loss < 0) return {};
  TESSERA_CHECK(parameters_->arena().belongs_to(this), "another step has taken the place of this");
  TESSERA_CHECK(tensors_[program_.loss].defined(), "nothing is measured before the first step");
  const at::Tensor numbers = tensors_[program_.loss].cpu();
  return {numbers.data_ptr<double>() + 1, numbers.data_ptr<double>() + numbers.numel()};
}

double Executor::gradient_norm() const {
  TESSERA_CHECK(program_.norm >= 0 && tensors_[program_.norm].defined(),
                "no step of this program has measured the gradients");
  return number(program_.norm);
}

/// What a caller allocates is not the step's, and may outlive this executor.
void Executor::call_back(const std::function<void()>& hook) {
  AccountScope not_here(nullptr);
  if (hook) hook();
}

double Executor::number(BufferId buffer) const {
  TESSERA_CHECK(parameters_->arena().belongs_to(this), "another step has taken the place of this");
  return tensors_[buffer].flatten()[0].item<double>();
}

at::Tensor Executor::result(const Result& result) const {
  TESSERA_CHECK(parameters_->arena().belongs_to(this), "another step has taken the place of this");
  return view(result.view).cpu();
}

/// What lives as long as the parameters is not allocated here.
void Executor::bind_permanent() {
  for (size_t i = 0; i < program_.parameters.size(); ++i)
    tensors_[program_.weights[i]] = parameters_->values()[program_.parameters[i]];
  for (size_t b = 0; b < program_.buckets.size(); ++b) {
    const Bucket& bucket = program_.buckets[b];
    if (is_permanent(program_.buffers[bucket.buffer].kind))
      tensors_[bucket.buffer] = parameters_->bucket(static_cast<int>(b));
    for (size_t copy = 0; copy < bucket.state.size(); ++copy)
      tensors_[bucket.state[copy]] =
          parameters_->state(static_cast<int>(b), static_cast<int>(copy));
    if (bucket.counters >= 0)
      tensors_[bucket.counters] = parameters_->counters(static_cast<int>(b));
  }
}

/// Where the gradients of this program's parameters are, for those who read them by parameter.
void Executor::show_gradients() {
  std::vector<at::Tensor> buckets;
  for (const Bucket& bucket : program_.buckets)
    buckets.push_back(tensors_[bucket.buffer].defined() ? tensors_[bucket.buffer]
                                                        : placed_[bucket.buffer]);
  parameters_->show_gradients(program_.buckets, buckets);
}

/// Addresses are made once; another program may have asked for a larger block since then. Returns
/// whether they are new.
bool Executor::bind_arena() {
  memory_.arena_bytes = layout_.bytes;
  const at::Tensor& block = parameters_->arena().reserve(layout_.bytes);
  if (block_.is_same(block)) return false;
  block_ = block;
  for (size_t id = 0; id < placed_.size(); ++id) {
    if (layout_.offsets[id] < 0) continue;
    const Buffer& buffer = program_.buffers[id];
    placed_[id] =
        laid_out(block_.narrow(0, layout_.offsets[id], buffer_bytes(buffer, options_.real))
                     .view(scalar_type(buffer.element)),
                 buffer.box.shape());
  }
  return true;
}

/// Dense numbers as a tensor. Images have the device's order of axes; what else there is, such as
/// statistics, has fewer of them.
at::Tensor Executor::laid_out(const at::Tensor& numbers, at::IntArrayRef shape) const {
  if (device_.layout() == ImageLayout::kContiguous || shape.size() < 4 || shape.size() > 5)
    return numbers.view(shape);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = strides[1] = 1;
  stride *= shape[1];
  for (size_t axis = shape.size() - 1; axis > 1; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  strides[0] = stride;
  return numbers.as_strided(shape, strides);
}

at::ScalarType Executor::scalar_type(ElementType element) const {
  switch (element) {
    case ElementType::kReal:
      return options_.real;
    case ElementType::kWide:
      return wide(options_.real);
    case ElementType::kIndex:
      return at::kLong;
    case ElementType::kDouble:
      return at::kDouble;
    case ElementType::kByte:
      return at::kByte;
    case ElementType::kInt:
      return at::kInt;
  }
  TESSERA_CHECK(false, "unknown element type");
}

at::Tensor Executor::view(const View& view) const {
  if (view.buffer < 0)
    return at::empty(view.box.shape(),
                     at::TensorOptions().dtype(wide(options_.real)).device(device_.place()));
  return Operand{tensors_[view.buffer], program_.buffers[view.buffer].box}.view(view.box);
}

}  // namespace tessera
