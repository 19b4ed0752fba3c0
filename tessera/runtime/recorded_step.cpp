#include <algorithm>

#include "tessera/runtime/executor.h"

// A step that is queued at once. A program of one rank does the same work in every step, at the
// same addresses, so a device that can record it need not be told each kernel again:
//
//   first step    one kernel after the other; the libraries choose their algorithms
//   second step   recorded, then replayed
//   later steps   replayed
//
// Inputs are written into tensors of their own first, which the recorded work copies. It ends where
// the host looks at numbers: at the update, and what comes after that is done as usual. Steps in
// which somebody wants to see more are not replayed.

namespace tessera {
namespace {

bool has_to_be_told(const Instruction& instruction, const Graph& graph) {
  if (const auto* run = std::get_if<Run>(&instruction))
    return graph.node(run->node).op->depends_on_step();
  return std::holds_alternative<Derive>(instruction) ||
         std::holds_alternative<DeriveGradients>(instruction);
}

/// Of the instructions that are recorded.
size_t end_of_recording(const Program& program) {
  const auto is_update = [](const Instruction& each) {
    return std::holds_alternative<Update>(each);
  };
  return static_cast<size_t>(std::ranges::find_if(program.instructions, is_update) -
                             program.instructions.begin());
}

}  // namespace

bool Executor::can_be_recorded() const {
  return device_.can_record() && program_.num_ranks == 1 &&
         std::ranges::none_of(program_.instructions, [&](const Instruction& each) {
           return has_to_be_told(each, graph_);
         });
}

std::vector<const void*> Executor::permanent_addresses() const {
  std::vector<const void*> addresses;
  for (size_t id = 0; id < tensors_.size(); ++id)
    if (tensors_[id].defined() && is_permanent(program_.buffers[id].kind))
      addresses.push_back(tensors_[id].data_ptr());
  return addresses;
}

/// Does the recorded part of the step where it can be replayed. Returns the first instruction that
/// is left to do.
size_t Executor::begin_recorded() {
  const bool first = !std::exchange(has_run_, true);
  if (!records_ || first || context_->trace != nullptr || context_->gradients_complete) return 0;
  if (recorded_ && recorded_->permanent != permanent_addresses()) recorded_.reset();
  load_inputs();
  if (!recorded_ && !record()) return 0;
  recorded_->work->replay();
  tensors_ = recorded_->tensors;
  memory_ = recorded_->memory;
  return end_of_recording(program_);
}

void Executor::load_inputs() {
  for (const Instruction& instruction : program_.instructions) {
    const auto* load = std::get_if<Load>(&instruction);
    if (load == nullptr) continue;
    at::Tensor& staged = staged_[load];
    const Buffer& buffer = program_.buffers[load->to.buffer];
    if (!staged.defined())
      staged =
          at::empty(load->to.box.shape(),
                    at::TensorOptions().dtype(scalar_type(buffer.element)).device(device_.place()));
    fill(*load, staged);
  }
}

/// Whether it could be done; else nothing has happened.
bool Executor::record() {
  RecordedStep step;
  step.permanent = permanent_addresses();
  const std::vector<at::Tensor> tensors_before = tensors_;
  const MemoryCounters memory_before = memory_;
  step.work = device_.record([this] {
    is_recording_ = true;
    for (size_t i = 0; i < end_of_recording(program_); ++i) execute(program_.instructions[i]);
    is_recording_ = false;
  });
  is_recording_ = false;  // also where recording has failed
  if (step.work == nullptr) {
    tensors_ = tensors_before;
    memory_ = memory_before;
    value_bytes_ = reduction_bytes_ = scratch_bytes_ = 0;
    return records_ = false;
  }
  step.tensors = tensors_;
  step.memory = memory_;
  recorded_ = std::move(step);
  return true;
}

}  // namespace tessera
