#pragma once
// An operator: what it computes, on any box of its output. It knows nothing of ranks. The lowering
// asks the geometric questions (which input box, what is kept, what is reduced) and writes a
// program; the executor calls the kernels. The reference path calls reference() on whole tensors
// under autograd and shares no backward code with the kernels.
//
// The phases of one operator in a training step, for each piece unless marked (once a rank):
//
//   piece_statistics → gather → merge_statistics (once)            if forward_statistics() asks
//     → update_buffers (once a step)                               ... and the node has buffers
//   forward
//   piece_grad_statistics → gather → merge_grad_statistics (once)  if backward_statistics() asks
//   input_gradient, weight_gradient
//
// Statistics are those of one micro-batch, so that it can go on alone; a loss has those of the
// whole batch, so that its denominator is the batch's, and buffers are updated from the whole
// batch.
//
// Adding an operator: derive from Op in a file of ops/, implement the questions and kernels, add a
// builder function, add it to the random networks of tests/ranks.

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/geometry/box.h"
#include "tessera/graph/value_type.h"

namespace tessera {

/// How a kernel reads an input.
enum class InputAccess {
  kStrided,  // any view; needed() stays inside the image
  kDense,    // one dense buffer of exactly the needed box, zeros outside the image
};

/// How a kernel gives its output.
enum class OutputAccess {
  kWritesView,    // writes into the view it is given (the interior of a buffer with margins)
  kReturnsDense,  // returns a dense tensor, which the executor adopts
  kNone,          // nothing is stored: a loss adds to the step's loss
};

/// A tensor and the box of the value that it covers: tensor.sizes() == box.shape().
struct Operand {
  at::Tensor tensor;
  Box box;
  /// The part of it that covers `sub`, as a view.
  at::Tensor view(const Box& sub) const;
};

struct NodeTypes {
  std::vector<ValueType> inputs;
  ValueType output;
};

/// All that a kernel may use. A field is defined where the phase needs it; kernels do not look
/// further. Gradients of inputs are stored, not added; gradients of parameters are added.
struct KernelArgs {
  const std::string* name = nullptr;  // of the node; the key of its random numbers
  const NodeTypes* types = nullptr;
  uint64_t seed = 0;
  int64_t step = 0;
  Box out_box;                       // the piece of the output
  std::vector<Operand> inputs;       // kStrided: box holds at least needed(i, out_box)
  Operand output;                    // forward, and where keeps_output()
  Operand grad_output;               // a view; box == out_box
  std::vector<Operand> grad_inputs;  // box == needed(i, out_box); undefined tensor: not wanted, or
                                     // (kDense inputs) to be returned here as a dense tensor
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> grad_parameters;
  std::vector<at::Tensor> buffers;  // running statistics
  at::Tensor saved;                 // see Saved
  at::Tensor piece_statistics;      // float64, [forward_statistics().per_piece]
  at::Tensor merged_statistics;     // float64, [forward_statistics().merged]
  at::Tensor piece_grad_statistics;
  at::Tensor merged_grad_statistics;
  at::Tensor loss;  // float64 scalar of this rank; a loss adds its piece's part
};

/// Arguments of the once-a-rank merges: the pieces of all ranks, in rank-then-piece order.
struct MergeArgs {
  const NodeTypes* types = nullptr;
  std::vector<Box> out_boxes;  // of the pieces whose statistics were gathered: of a micro-batch,
                               // or (losses, update_buffers) of the whole batch
  at::Tensor gathered;         // float64, [pieces, per_piece]
  at::Tensor merged;           // float64, [merged]; the result
  at::Tensor forward_merged;   // in merge_grad_statistics: the forward's result
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;  // of update_buffers: the running statistics
};

/// float64 numbers that a piece contributes and that the merge leaves; 0 and 0: no statistics.
struct Statistics {
  int64_t per_piece = 0;
  int64_t merged = 0;
};

/// A tensor that forward leaves for backward besides inputs and outputs (max pooling's choices).
struct Saved {
  at::ScalarType type = at::kByte;
  int64_t numel = 0;  // 0: none
};

struct ReferenceArgs {
  const std::string* name = nullptr;
  uint64_t seed = 0;
  int64_t step = 0;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;  // updated in place, outside autograd
};

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string kind() const = 0;
  /// What distinguishes this operator from others of its kind, for people: "3x3, stride 2". May be
  /// empty.
  virtual std::string settings() const { return {}; }

  // Questions of geometry and cost.

  /// Throws InvalidInput with the legal values where the inputs do not fit.
  virtual ValueType infer_type(std::span<const ValueType> inputs) const = 0;
  /// The box of input `input` that the box `out` of the output reads.
  virtual Box needed(int input, const Box& out, const NodeTypes& types) const = 0;
  virtual InputAccess input_access(int /*input*/) const { return InputAccess::kStrided; }
  virtual OutputAccess output_access() const { return OutputAccess::kWritesView; }
  /// Whether backward reads this forward input / the forward output.
  virtual bool keeps_input(int /*input*/) const { return false; }
  virtual bool keeps_output() const { return false; }
  /// Whether a gradient flows to this input (targets have none).
  virtual bool differentiable(int /*input*/) const { return true; }
  virtual Saved saved(const Box& /*out*/, const NodeTypes&) const { return {}; }
  /// Whether running forward again costs little compared with a convolution, and gives the same
  /// bits.
  virtual bool cheap_to_recompute() const { return false; }
  virtual Statistics forward_statistics(const NodeTypes&) const { return {}; }
  virtual Statistics backward_statistics(const NodeTypes&) const { return {}; }
  /// Whether piece_statistics reads this input. A loss whose statistics come from targets alone
  /// knows its denominator before the first prediction.
  virtual bool statistics_read(int /*input*/) const { return true; }
  /// Whether weight_gradient needs nothing but piece_grad_statistics: then it is done at once, and
  /// what else backward reads can go.
  virtual bool weight_gradient_from_statistics() const { return false; }
  /// How many parts of the batch are normalised separately; 0: no sample depends on another.
  virtual int64_t batch_parts() const { return 0; }
  virtual bool is_loss() const { return false; }
  /// Multiplications and additions of forward on a box of the output.
  virtual double flops(const Box& out, const NodeTypes&) const {
    return static_cast<double>(out.volume());
  }
  /// Elements that forward on a box of the output reads and writes, each once: of the inputs and of
  /// the output.
  virtual double elements_moved(const Box& out, const NodeTypes& types) const {
    int64_t elements = out.volume();
    for (int input = 0; input < static_cast<int>(types.inputs.size()); ++input)
      elements +=
          intersect(needed(input, out, types), Box::whole(types.inputs[input].shape())).volume();
    return static_cast<double>(elements);
  }

  // Kernels.

  virtual void forward(KernelArgs& args) const = 0;
  virtual void input_gradient(KernelArgs& args) const = 0;
  /// Adds to args.grad_parameters. Called only where the node has parameters.
  virtual void weight_gradient(KernelArgs&) const {}
  virtual void piece_statistics(KernelArgs&) const {}
  virtual void merge_statistics(MergeArgs&) const {}
  /// Updates args.buffers from the statistics of all pieces of the batch.
  virtual void update_buffers(MergeArgs&) const {}
  virtual void piece_grad_statistics(KernelArgs&) const {}
  virtual void merge_grad_statistics(MergeArgs&) const {}

  // Oracle.

  virtual at::Tensor reference(const ReferenceArgs& args) const = 0;
};

}  // namespace tessera
