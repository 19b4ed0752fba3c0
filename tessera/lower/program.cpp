#include "tessera/lower/program.h"

#include "tessera/base/error.h"
#include "tessera/graph/number_type.h"

namespace tessera {
int64_t element_bytes(ElementType element, at::ScalarType real) {
  switch (element) {
    case ElementType::kReal:
      return static_cast<int64_t>(c10::elementSize(real));
    case ElementType::kWide:
      return static_cast<int64_t>(c10::elementSize(wide(real)));
    case ElementType::kIndex:
    case ElementType::kDouble:
      return 8;
    case ElementType::kInt:
      return 4;
    case ElementType::kByte:
      return 1;
  }
  TESSERA_CHECK(false, "unknown element type");
}

int64_t buffer_bytes(const Buffer& buffer, at::ScalarType real) {
  return buffer.box.volume() * element_bytes(buffer.element, real);
}

bool is_written(Phase phase, Role role) {
  switch (role) {
    case Role::kOutput:
    case Role::kSaved:
      return phase == Phase::kForward || phase == Phase::kRecompute;
    case Role::kLoss:
      return true;
    case Role::kGradInput:
      return phase == Phase::kInputGradient;
    case Role::kGradWeight:
      return phase == Phase::kWeightGradient;
    case Role::kRunning:
      return phase == Phase::kUpdateBuffers;
    case Role::kPieceStatistics:
      return phase == Phase::kPieceStatistics;
    case Role::kPieceGradStatistics:
      return phase == Phase::kPieceGradStatistics;
    case Role::kMergedStatistics:
      return phase == Phase::kMergeStatistics;
    case Role::kScratch:
    case Role::kCombined:
      return true;
    case Role::kInput:
    case Role::kGradOutput:
    case Role::kWeight:
    case Role::kMergedGradStatistics:
    case Role::kRow:
      return false;
  }
  TESSERA_CHECK(false, "unknown role");
}

Stream stream_of(const Instruction& instruction) {
  return std::visit([](const auto& each) { return each.stream; }, instruction);
}

namespace {

/// Appends the buffers of one instruction.
struct Touched {
  std::vector<BufferId>* buffers;

  void operator()(const Alloc&) const {}
  void operator()(const Free&) const {}
  void operator()(const Enter&) const {}
  void operator()(const Fill& fill) const { add(fill.buffer); }
  void operator()(const Copy& copy) const {
    add(copy.from.buffer);
    add(copy.to.buffer);
  }
  void operator()(const Load& load) const { add(load.to.buffer); }
  void operator()(const Run& run) const {
    for (const Argument& argument : run.arguments)
      if (argument.view.buffer >= 0) add(argument.view.buffer);
  }
  void operator()(const StartTransfer& transfer) const {
    add(transfer.sends);
    for (const Message& message : transfer.receives) add(message.strip);
  }
  void operator()(const FinishTransfer& transfer) const { add(transfer.strips); }
  void operator()(const Unpack& unpack) const { add(unpack.messages); }
  void operator()(const StartReduce& reduce) const { add_reduction(reduce); }
  void operator()(const AdvanceReduce& reduce) const { add_reduction(reduce); }
  void operator()(const FinishReduce& reduce) const { add_reduction(reduce); }
  void operator()(const Derive& derive) const {
    add(derive.sources);
    add(derive.result);
  }
  void operator()(const DeriveGradients& derive) const {
    add(derive.gradient.buffer);
    for (const View& gradient : derive.gradients)
      if (gradient.buffer >= 0) add(gradient.buffer);
  }
  void operator()(const ScaleGradients& scale) const { add(scale.buffers); }
  void operator()(const SquareGradients& squares) const {
    for (const Square& square : squares.gradients) add(square.gradient.buffer);
    add(squares.squares);
  }
  void operator()(const Clip& clip) const {
    add(clip.squares);
    add(clip.norm);
    add(clip.buckets);
  }
  void operator()(const Update& update) const {
    if (update.loss >= 0) add(update.loss);
    add(update.norm);
    for (const auto* list : {&update.weights, &update.buckets, &update.state}) add(*list);
  }

 private:
  void add(BufferId buffer) const { buffers->push_back(buffer); }
  void add(const std::vector<BufferId>& more) const {
    buffers->insert(buffers->end(), more.begin(), more.end());
  }
  void add(const std::vector<Message>& messages) const {
    for (const Message& message : messages) {
      add(message.strip);
      for (const Segment& segment : message.segments) add(segment.view.buffer);
    }
  }
  template <class Reduce>
  void add_reduction(const Reduce& reduce) const {
    add(reduce.buffer);
    if (reduce.received >= 0) add(reduce.received);
  }
};

}  // namespace

std::vector<BufferId> kept_buffers(const Program& program) {
  std::vector<BufferId> kept;
  for (BufferId number : {program.loss, program.norm})
    if (number >= 0) kept.push_back(number);
  for (const Bucket& bucket : program.buckets)
    if (!is_permanent(program.buffers[bucket.buffer].kind)) kept.push_back(bucket.buffer);
  for (const auto* results : {&program.outputs, &program.input_gradients})
    for (const Result& result : *results) kept.push_back(result.view.buffer);
  return kept;
}

std::vector<BufferId> touched_buffers(const Instruction& instruction) {
  std::vector<BufferId> buffers;
  std::visit(Touched{&buffers}, instruction);
  return buffers;
}

}  // namespace tessera
