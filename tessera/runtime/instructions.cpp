#include <cmath>

#include "tessera/base/error.h"
#include "tessera/kernels/optimise.h"
#include "tessera/kernels/pack.h"
#include "tessera/runtime/executor.h"

// What each instruction does; Run has a file of its own (run_kernel.cpp).

namespace tessera {
namespace {

/// The memory of a dense tensor, in whatever order its numbers lie.
at::Tensor laid_flat(const at::Tensor& dense) { return dense.as_strided({dense.numel()}, {1}); }

BoxStore store_of(Combine combine) {
  return combine == Combine::kAdd ? BoxStore::kAdd : BoxStore::kReplace;
}

/// All bits: not a number, and no index of anything.
void poison(const at::Tensor& tensor) {
  if (tensor.numel() > 0) laid_flat(tensor).view(at::kByte).fill_(0xff);
}

}  // namespace

at::Tensor Executor::segment(const Message& message, const Segment& segment) const {
  return laid_out(
      laid_flat(tensors_[message.strip]).narrow(0, segment.offset, segment.view.box.volume()),
      segment.view.box.shape());
}

/// What is sent must have been computed, and what receives must no longer be read.
DeviceQueue* Executor::before_messages() {
  DeviceQueue* const queue = device_.queue(Stream::kCommunication);
  if (queue != nullptr) queue->wait_for(*device_.queue(Stream::kCompute)->now());
  return queue;
}

void Executor::after_messages() {
  if (DeviceQueue* const queue = device_.queue(Stream::kCommunication))
    device_.queue(Stream::kCompute)->wait_for(*queue->now());
}

/// From wherever the box is to be had. The device may be late, so memory of the host keeps it until
/// the step has ended.
void Executor::fill(const Load& load, const at::Tensor& target) {
  const Box& box = load.to.box;
  at::Tensor found;
  if (context_->find) {
    found = context_->find(load.value, box);
  } else if (target.is_cpu()) {
    return context_->load(load.value, box, target);
  } else {
    at::Tensor& host = on_host_[&load];
    if (!host.defined()) host = device_.on_host(target.sizes(), target.scalar_type());
    context_->load(load.value, box, host);
    found = host;
  }
  move_boxes(BoxStore::kReplace, {found.to(target.device(), /*non_blocking=*/true)}, {target});
}

void Executor::count(BufferId buffer, int64_t sign) {
  const int64_t bytes = sign * static_cast<int64_t>(placed_[buffer].nbytes());
  value_bytes_ += bytes;
  if (program_.buffers[buffer].kind == BufferKind::kReduction) reduction_bytes_ += bytes;
  if (program_.buffers[buffer].kind == BufferKind::kScratch) scratch_bytes_ += bytes;
  memory_.peak_value_bytes = std::max(memory_.peak_value_bytes, value_bytes_);
  memory_.reduction_bytes = std::max(memory_.reduction_bytes, reduction_bytes_);
  memory_.scratch_bytes = std::max(memory_.scratch_bytes, scratch_bytes_);
}

void Executor::execute(const Alloc& alloc) {
  count(alloc.buffer, 1);
  tensors_[alloc.buffer] = placed_[alloc.buffer];
  if (PoisonedArenas::wanted()) poison(placed_[alloc.buffer]);
}

void Executor::execute(const Free& free) {
  count(free.buffer, -1);
  tensors_[free.buffer] = at::Tensor();
  if (PoisonedArenas::wanted()) poison(placed_[free.buffer]);
}

void Executor::execute(const Fill& fill) {
  std::vector<at::Tensor> borders;
  for (const Box& box : fill.boxes) borders.push_back(view({fill.buffer, box}));
  zero_boxes(borders);
}

void Executor::execute(const Copy& copy) {
  move_boxes(store_of(copy.combine), {view(copy.from)}, {view(copy.to)});
}

void Executor::execute(const Load& load) {
  const at::Tensor target = view(load.to);
  if (is_recording_)
    move_boxes(BoxStore::kReplace, {staged_.at(&load)}, {target});
  else
    fill(load, target);
}

void Executor::execute(const StartTransfer& transfer) {
  Batch batch;
  std::vector<at::Tensor> sources, targets;
  for (const Message& message : transfer.sends) {
    for (const Segment& each : message.segments) {
      if (each.view.buffer == message.strip) continue;
      sources.push_back(view(each.view));
      targets.push_back(segment(message, each));
    }
    const at::Tensor& strip = tensors_[message.strip];
    batch.sends.push_back({message.peer, strip.data_ptr(), static_cast<int64_t>(strip.nbytes())});
  }
  for (const Message& message : transfer.receives) {
    const at::Tensor& strip = tensors_[message.strip];
    batch.receives.push_back(
        {message.peer, strip.data_ptr(), static_cast<int64_t>(strip.nbytes())});
  }
  move_boxes(BoxStore::kReplace, sources, targets);
  batch.queue = before_messages();
  transfers_[transfer.channel] = Outstanding(*transport_, batch, "an exchange");
}

void Executor::execute(const FinishTransfer& transfer) {
  transfers_.at(transfer.channel).finish();
  after_messages();
  transfers_.erase(transfer.channel);
}

void Executor::execute(const Unpack& unpack) {
  std::vector<at::Tensor> sources, targets;
  for (const Message& message : unpack.messages)
    for (const Segment& each : message.segments) {
      sources.push_back(segment(message, each));
      targets.push_back(view(each.view));
    }
  move_boxes(store_of(unpack.combine), sources, targets);
}

void Executor::execute(const StartReduce& reduce) {
  const at::Tensor& tensor = tensors_[reduce.buffer];
  reductions_[reduce.channel] = std::make_unique<AllReduce>(
      *transport_, reduce.members, tensor.data_ptr(), tensor.numel(),
      tensor.scalar_type() == at::kDouble ? SumType::kFloat64 : SumType::kFloat32,
      reduce.received >= 0 ? tensors_[reduce.received].data_ptr() : nullptr, before_messages());
}

void Executor::execute(const AdvanceReduce& reduce) { reductions_.at(reduce.channel)->advance(); }

void Executor::execute(const FinishReduce& reduce) {
  reductions_.at(reduce.channel)->finish();
  after_messages();
  reductions_.erase(reduce.channel);
}

void Executor::execute(const ScaleGradients& scale) {
  for (BufferId buffer : scale.buffers) tensors_[buffer].mul_(scale.factor);
}

void Executor::execute(const SquareGradients& squares) {
  call_back(context_->gradients_complete);
  at::Tensor& sums = tensors_[squares.squares];
  sums.zero_();
  for (const Square& square : squares.gradients)
    sum_of_squares(view(square.gradient), sums[square.index]);
}

void Executor::execute(const Clip& clip) {
  std::vector<at::Tensor> buckets;
  for (BufferId bucket : clip.buckets) buckets.push_back(tensors_[bucket]);
  clip_gradients(tensors_[clip.squares], clip.max_norm, tensors_[clip.norm], buckets);
}

void Executor::execute(const Update& update) {
  const bool finite =
      std::isfinite(number(update.norm)) && (update.loss < 0 || std::isfinite(number(update.loss)));
  if (finite) call_back(context_->update);
}

void Executor::execute(const Enter&) {}

}  // namespace tessera
