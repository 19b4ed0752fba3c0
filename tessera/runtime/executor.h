#pragma once
// Runs a program: an interpreter of its list, over one transport. A Start does not wait, a Finish
// does. It counts what it really allocates, so that the simulator can be held to it.
//
// One thread drives one executor. Every rank of the transport runs the program of its own rank, of
// one set that the checker has passed.
//
// Example:
//   Executor executor(lowering.graph(), lowering.program(rank), &parameters, &transport, {});
//   executor.run({.seed = 1, .step = 0, .load = my_loader});
//   executor.loss();

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/comm/collectives.h"
#include "tessera/comm/outstanding.h"
#include "tessera/lower/arena.h"
#include "tessera/report/trace_recorder.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/parameter_store.h"

namespace tessera {

struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;
  /// Writes the box of a graph input into the tensor, which lies on the host and has the box's
  /// shape.
  std::function<void(ValueId input, const Box& box, at::Tensor target)> load = {};
  /// Where the box of an input is to be found, on the host or on the device, until the step has
  /// ended: in place of `load`, for those who have it somewhere.
  std::function<at::Tensor(ValueId input, const Box& box)> find = {};
  /// The optimiser; called by Update, unless the loss or the norm is not a finite number.
  std::function<void()> update = {};
  /// Called when the gradients are complete, before they are clipped; null: nobody wants to know.
  std::function<void()> gradients_complete = {};
  /// Records what this rank does and when; null: nobody wants to know.
  TraceRecorder* trace = nullptr;
};

struct ExecutorOptions {
  at::ScalarType real = at::kFloat;
};

struct MemoryCounters {
  int64_t peak_value_bytes = 0;      // the most that buffers held at once
  int64_t arena_bytes = 0;           // the memory that they lie in
  int64_t reduction_bytes = 0;       // of those, the most that reductions received at once
  int64_t scratch_bytes = 0;         // of those, the most that kernels had for themselves at once
  int64_t peak_workspace_bytes = 0;  // largest that one kernel held besides its operands
};

class Executor {
 public:
  /// All but the program outlive it. Collective over all ranks of a world that is too large to be
  /// proved together: they compare their messages.
  Executor(const Graph& graph, Program program, ParameterStore* parameters, Transport* transport,
           const ExecutorOptions& options);

  const Program& program() const { return program_; }

  /// One step. Collective over all ranks. It is done on the device, too, when this returns.
  void run(const StepContext& context);

  /// The loss of the last step, summed over all ranks. The graph must have one.
  double loss() const;
  /// The numbers of the last step that come after the loss (graph/step_numbers.h), summed over all
  /// ranks.
  std::vector<double> measured() const;
  /// The norm of the last step's gradients, before they were clipped. Only programs that update
  /// measure it.
  double gradient_norm() const;
  /// A result of the last step that the program keeps, on the host. Until the next step of any
  /// executor on these parameters: where the host computes, it is that step's memory.
  at::Tensor result(const Result& result) const;
  const MemoryCounters& memory() const { return memory_; }

 private:
  void draw_keys();
  void execute_all(size_t begin, TraceRecorder* trace);
  void execute_on_timer(TraceRecorder* trace, DeviceTimer* timer);
  void execute(const Instruction& instruction);
  void execute(const Alloc& alloc);
  void execute(const Free& free);
  void execute(const Fill& fill);
  void execute(const Copy& copy);
  void execute(const Load& load);
  void execute(const Run& run);
  void execute(const StartTransfer& transfer);
  void execute(const FinishTransfer& transfer);
  void execute(const Unpack& unpack);
  void execute(const StartReduce& reduce);
  void execute(const AdvanceReduce& reduce);
  void execute(const FinishReduce& reduce);
  void execute(const Derive& derive);
  void execute(const DeriveGradients& derive);
  void execute(const ScaleGradients& scale);
  void execute(const SquareGradients& squares);
  void execute(const Clip& clip);
  void execute(const Update& update);
  void execute(const Enter& enter);

  void refuse_labels() const;
  void run_kernel(const Run& run, KernelArgs* args);
  void run_on_rows(const Run& run, const Node& node);
  KernelArgs kernel_args(const Run& run, const Node& node) const;
  void count(BufferId buffer, int64_t sign);
  void bind_permanent();
  void show_gradients();
  bool bind_arena();
  static void call_back(const std::function<void()>& hook);
  double number(BufferId buffer) const;
  std::vector<at::Tensor> tensors_of(const Run& run, Role role) const;

  at::ScalarType scalar_type(ElementType element) const;
  at::Tensor view(const View& view) const;
  at::Tensor segment(const Message& message, const Segment& segment) const;
  at::Tensor laid_out(const at::Tensor& numbers, at::IntArrayRef shape) const;
  void fill(const Load& load, const at::Tensor& target);

  // recorded_step.cpp
  bool can_be_recorded() const;
  size_t begin_recorded();
  void load_inputs();
  bool record();
  std::vector<const void*> permanent_addresses() const;
  DeviceQueue* before_messages();
  void after_messages();

  const Graph& graph_;
  const Program program_;
  ParameterStore* parameters_;
  Transport* transport_;
  ExecutorOptions options_;
  Device& device_;
  const StepContext* context_ = nullptr;

  MemoryAccount account_;  // before the tensors that are booked on it
  const ArenaLayout layout_;
  at::Tensor block_;                 // of the arena, to which `placed_` are bound
  std::vector<at::Tensor> placed_;   // by BufferId; where each lies in the block
  std::vector<at::Tensor> tensors_;  // by BufferId; undefined while not allocated
  // By NodeId, on the device; undefined where the host computes.
  at::Tensor illegal_labels_, keys_;
  at::Tensor keys_on_host_;
  std::map<const Load*, at::Tensor> on_host_;  // boxes of inputs, where the device is another
  std::map<int, Outstanding> transfers_;       // by channel; after the tensors that they name
  std::map<int, std::unique_ptr<AllReduce>> reductions_;
  /// What the gradient of a derived weight needs.
  struct KeptDerivation {
    std::vector<at::Tensor> sources;
    at::Tensor result;
  };
  std::map<int, KeptDerivation> derivations_;
  /// The step up to where the host has to look at numbers, as one piece of work for the device.
  struct RecordedStep {
    std::unique_ptr<DeviceRecording> work;
    std::vector<const void*> permanent;  // addresses that it works on
    std::vector<at::Tensor> tensors;     // as it leaves them
    MemoryCounters memory;
  };
  bool records_ = false;       // whether steps of this program can be recorded
  bool has_run_ = false;       // once: kernels have chosen how they work
  bool is_recording_ = false;  // inputs then come from `staged_`
  std::map<const Load*, at::Tensor> staged_;
  std::optional<RecordedStep> recorded_;
  MemoryCounters memory_;
  int64_t value_bytes_ = 0;
  int64_t reduction_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tessera
