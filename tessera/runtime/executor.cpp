#include "tessera/runtime/executor.h"

#include <c10/core/InferenceMode.h>

#include "tessera/base/error.h"

namespace tessera {

Executor::Executor(const Graph& graph, const Program& program, ParameterStore* parameters,
                   Transport* transport, const ExecutorOptions& options)
    : graph_(graph),
      program_(program),
      parameters_(parameters),
      transport_(transport),
      options_(options),
      tensors_(program.buffers.size()) {
  TESSERA_CHECK(transport->rank() == program.rank && transport->size() == program.num_ranks,
                "the program of rank {}/{} on rank {}/{}", program.rank, program.num_ranks,
                transport->rank(), transport->size());
  parameters_->make_buckets(program_.buckets);
}

void Executor::run(const StepContext& context) {
  c10::InferenceMode no_autograd;
  AccountScope book_here(&account_);
  context_ = &context;
  memory_ = {};
  value_bytes_ = 0;
  release();
  bind_buckets();
  for (const Instruction& instruction : program_.instructions)
    traced(context.trace, instruction,
           [&] { std::visit([this](const auto& each) { execute(each); }, instruction); });
  context_ = nullptr;
}

void Executor::release() { std::fill(tensors_.begin(), tensors_.end(), at::Tensor()); }

double Executor::loss() const {
  if (program_.loss < 0)
    throw_error<InvalidInput>(
        "[loss] the graph has none; put one on its outputs with add_losses()");
  TESSERA_CHECK(tensors_[program_.loss].defined(), "there is no loss before the first step");
  return tensors_[program_.loss].item<double>();
}

void Executor::bind_buckets() {
  for (size_t b = 0; b < program_.buckets.size(); ++b)
    tensors_[program_.buckets[b].buffer] = parameters_->bucket(static_cast<int>(b));
}

at::ScalarType Executor::scalar_type(ElementType element) const {
  switch (element) {
    case ElementType::kReal:
      return options_.real;
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
  if (view.buffer < 0) return at::empty(view.box.shape(), options_.real);
  return Operand{tensors_[view.buffer], program_.buffers[view.buffer].box}.view(view.box);
}

at::Tensor Executor::segment(const Message& message, const Segment& segment) const {
  return tensors_[message.strip]
      .view(-1)
      .narrow(0, segment.offset, segment.view.box.volume())
      .view(segment.view.box.shape());
}

void Executor::hold(BufferId buffer, at::Tensor tensor) {
  value_bytes_ += static_cast<int64_t>(tensor.nbytes());
  memory_.peak_value_bytes = std::max(memory_.peak_value_bytes, value_bytes_);
  tensors_[buffer] = std::move(tensor);
}

void Executor::execute(const Alloc& alloc) {
  const Buffer& buffer = program_.buffers[alloc.buffer];
  if (buffer.adopted) return;  // counted when the kernel returns it
  hold(alloc.buffer, at::empty(buffer.box.shape(), scalar_type(buffer.element)));
}

void Executor::execute(const Free& free) {
  value_bytes_ -= static_cast<int64_t>(tensors_[free.buffer].nbytes());
  tensors_[free.buffer] = at::Tensor();
}

void Executor::execute(const Fill& fill) {
  for (const Box& box : fill.boxes) view({fill.buffer, box}).zero_();
}

void Executor::execute(const Copy& copy) {
  at::Tensor target = view(copy.to);
  if (copy.combine == Combine::kAdd)
    target.add_(view(copy.from));
  else
    target.copy_(view(copy.from));
}

void Executor::execute(const Load& load) { context_->load(load.value, load.to.box, view(load.to)); }

void Executor::execute(const StartTransfer& transfer) {
  Batch batch;
  for (const Message& message : transfer.sends) {
    for (const Segment& each : message.segments)
      if (each.view.buffer != message.strip) segment(message, each).copy_(view(each.view));
    const at::Tensor& strip = tensors_[message.strip];
    batch.sends.push_back({message.peer, strip.data_ptr(), static_cast<int64_t>(strip.nbytes())});
  }
  for (const Message& message : transfer.receives) {
    const at::Tensor& strip = tensors_[message.strip];
    batch.receives.push_back(
        {message.peer, strip.data_ptr(), static_cast<int64_t>(strip.nbytes())});
  }
  transfers_[transfer.channel] = Outstanding(*transport_, batch, "an exchange");
}

void Executor::execute(const FinishTransfer& transfer) {
  transfers_.at(transfer.channel).finish();
  transfers_.erase(transfer.channel);
}

void Executor::execute(const Unpack& unpack) {
  for (const Message& message : unpack.messages)
    for (const Segment& each : message.segments) {
      at::Tensor target = view(each.view);
      if (unpack.combine == Combine::kAdd)
        target.add_(segment(message, each));
      else
        target.copy_(segment(message, each));
    }
}

void Executor::execute(const StartReduce& reduce) {
  const at::Tensor& tensor = tensors_[reduce.buffer];
  reductions_[reduce.channel] = std::make_unique<AllReduce>(
      *transport_, reduce.members, tensor.data_ptr(), tensor.numel(),
      tensor.scalar_type() == at::kDouble ? SumType::kFloat64 : SumType::kFloat32);
}

void Executor::execute(const FinishReduce& reduce) {
  reductions_.at(reduce.channel)->finish();
  reductions_.erase(reduce.channel);
}

void Executor::execute(const StartGather& gather) {
  const at::Tensor& tensor = tensors_[gather.buffer];
  std::vector<int64_t> block_bytes;
  for (int64_t rows : gather.rows)
    block_bytes.push_back(rows * tensor.size(1) * static_cast<int64_t>(tensor.element_size()));
  gathers_[gather.channel] =
      std::make_unique<AllGather>(*transport_, gather.members, block_bytes, tensor.data_ptr());
}

void Executor::execute(const FinishGather& gather) {
  gathers_.at(gather.channel)->finish();
  gathers_.erase(gather.channel);
}

void Executor::execute(const Update&) {
  if (context_->update) context_->update();
}

void Executor::execute(const Enter&) {}

}  // namespace tessera
