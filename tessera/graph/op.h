#pragma once
// An operator: what it computes, on any box of its output. It knows nothing of ranks. The lowering
// asks the geometric questions (which input box, what is kept, what is reduced) and writes a
// program; the executor calls the kernels. The reference path calls reference() on whole tensors
// under autograd and shares no backward code with the kernels.
//
// The phases of one operator in a training step, for each piece unless marked (once a rank):
//
//   piece_statistics                                             if forward_statistics() asks
//     → combine_statistics (up a tree) → merge_statistics (once)
//     → update_buffers (once a step)                             ... and the node has buffers
//   forward
//   piece_grad_statistics → sum_statistics (up a tree)           if backward_statistics() asks
//   input_gradient, weight_gradient
//
// Statistics of a piece are a row of float64 numbers, of one form for all pieces. The program
// combines a few rows into one of the same form, again and again, up a tree that is fixed by the
// plan, until there is one row of the whole. So a row carries all that combining needs, counts
// included: nobody knows whose elements are behind a row. A row of zeros is that of no elements,
// and combining it with others changes no bit of the result.
//
// The whole is one micro-batch, so that it can go on alone; for a loss it is the whole batch, so
// that its denominator is the batch's, and buffers are updated from the rows of all micro-batches.
//
// Adding an operator: derive from Op in a file of ops/, implement the questions and kernels, add a
// builder function, add it to the random networks of tests/ranks.

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/base/scratch_bytes.h"
#include "tessera/geometry/box.h"
#include "tessera/graph/number_type.h"
#include "tessera/graph/value_type.h"

namespace tessera {

struct ScriptArgs;  // script.h

/// What a program runs of an operator.
enum class Phase {
  kForward,
  kRecompute,  // forward again, in backward
  kPieceStatistics,
  kCombineStatistics,  // some rows into one
  kMergeStatistics,    // from the row of the whole to what kernels read
  kUpdateBuffers,      // running statistics, once a step
  kPieceGradStatistics,
  kCombineGradStatistics,
  kInputGradient,
  kWeightGradient,
};

/// "forward", "combine statistics", ...
const char* to_string(Phase phase);

/// How a kernel reads an input.
enum class InputAccess {
  kStrided,  // any view; needed() stays inside the image
  kDense,    // one dense buffer of exactly the needed box, zeros outside the image; then the
             // gradient of the output is dense, too
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
  Operand output;                    // forward writes this view (the interior of a buffer with
                                     // margins); a loss has none. Backward: where keeps_output()
  Operand grad_output;               // a view; box == out_box, or a box that holds the reached()
                                     // of the gradient of the input that is wanted
  std::vector<Operand> grad_inputs;  // box == needed(i, out_box), or any that has a reached();
                                     // undefined tensor: not wanted
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> grad_parameters;
  std::vector<at::Tensor> buffers;    // running statistics
  at::Tensor saved;                   // see Saved
  at::Tensor piece_statistics;        // float64, [forward_statistics().per_piece]
  at::Tensor merged_statistics;       // float64, [forward_statistics().merged]
  at::Tensor piece_grad_statistics;   // float64, [backward_statistics()]
  at::Tensor merged_grad_statistics;  // the sum of all pieces' rows
  at::Tensor scratch;  // bytes that hold anything, at least as many as scratch_bytes() needs, from
                       // an address that is a multiple of 64; undefined where it needs none
  at::Tensor loss;     // float64 scalar of this rank; a loss adds its piece's part
  /// int64 scalar in which piece_statistics leaves a label that is not legal, for refuse_label(); 0
  /// before, and where there is none. Undefined: piece_statistics refuses it at once, for which it
  /// waits for the device.
  at::Tensor illegal_label;
  /// int64 scalar beside the operands, the state of random_key(seed, name, step). It is read when
  /// the kernels run, so what is recorded once serves many steps. Undefined: they make the key.
  at::Tensor key;
};

struct MergeArgs {
  const NodeTypes* types = nullptr;
  at::Tensor row;     // float64, [forward_statistics().per_piece], of the whole
  at::Tensor merged;  // float64, [forward_statistics().merged]; the result
};

struct UpdateArgs {
  const NodeTypes* types = nullptr;
  std::vector<at::Tensor> rows;     // of the micro-batches, in their order
  std::vector<at::Tensor> buffers;  // the running statistics, updated in place
};

/// float64 numbers of a piece's row and of what merge_statistics leaves; 0 and 0: no statistics.
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
  /// The box of the output, inside the image, whose gradient reaches the box `in` of this input: an
  /// operator that says so also computes the gradient of `in` alone, from that. None: it computes
  /// the gradient of all that a box of the output needs, and parts of it are added.
  virtual std::optional<Box> reached(int /*input*/, const Box& /*in*/, const NodeTypes&) const {
    return std::nullopt;
  }
  /// Whether backward reads this forward input / the forward output.
  virtual bool keeps_input(int /*input*/) const { return false; }
  virtual bool keeps_output() const { return false; }
  /// Whether a gradient flows to this input (targets have none).
  virtual bool differentiable(int /*input*/) const { return true; }
  /// Whether its parameters get a gradient from it: a copy of another node's operator may read that
  /// node's weights and leave their gradient to it.
  virtual bool trains_parameters() const { return true; }
  /// Whether its kernels of this phase read and write values that are narrow (number_type.h); else
  /// they get copies in float32.
  virtual bool takes_narrow(Phase, at::DeviceType) const { return false; }
  /// Whether forward gives zeros, whatever it reads: a step never runs it, and stores no zeros.
  virtual bool gives_zeros() const { return false; }
  virtual Saved saved(const Box& /*out*/, const NodeTypes&) const { return {}; }
  /// Whether running forward again costs little compared with a convolution, and gives the same
  /// bits.
  virtual bool cheap_to_recompute() const { return false; }
  virtual Statistics forward_statistics(const NodeTypes&) const { return {}; }
  /// float64 numbers of a piece's row of piece_grad_statistics; 0: none.
  virtual int64_t backward_statistics(const NodeTypes&) const { return 0; }
  /// Whether piece_statistics reads this input. A loss whose statistics come from targets alone
  /// knows its denominator before the first prediction.
  virtual bool statistics_read(int /*input*/) const { return true; }
  /// Whether weight_gradient needs nothing but piece_grad_statistics: then it is done at once, and
  /// what else backward reads can go.
  virtual bool weight_gradient_from_statistics() const { return false; }
  /// Whether a pixel of the output depends on where it is in the whole image, beyond its distance
  /// from the ends: a part of the image does not give the same numbers.
  virtual bool depends_on_place() const { return false; }
  /// Whether its kernels read the seed or the step, other than by KernelArgs::key: then what they
  /// did in one step cannot be repeated for the next.
  virtual bool depends_on_step() const { return false; }
  /// How many parts of the batch are normalised separately; 0: no sample depends on another.
  virtual int64_t batch_parts() const { return 0; }
  /// Whether it stores nothing and adds to the step's loss.
  virtual bool is_loss() const { return false; }
  /// Throws InvalidInput that names the label that piece_statistics of this node has left in
  /// KernelArgs::illegal_label, unless that is 0.
  virtual void refuse_label(int64_t /*label*/, const std::string& /*name*/,
                            const NodeTypes&) const {}
  /// Multiplications and additions of forward on a box of the output.
  virtual double flops(const Box& out, const NodeTypes&) const {
    return static_cast<double>(out.volume());
  }
  /// Elements that forward on a box of the output reads and writes: what it needs inside the image,
  /// what it stores, and the weights of products. A label counts as one element.
  virtual double elements_moved(const Box& out, const NodeTypes& types) const;
  /// What a kernel of a piece needs besides its operands, where it grows with the piece or the
  /// weight. What a library takes by itself is not counted.
  virtual ScratchBytes scratch_bytes(Phase, const Box& /*out*/, const NodeTypes&,
                                     const Numbers&) const {
    return {};
  }

  // Kernels.

  virtual void forward(KernelArgs& args) const = 0;
  virtual void input_gradient(KernelArgs& args) const = 0;
  /// Adds to args.grad_parameters. Called only where the node has parameters.
  virtual void weight_gradient(KernelArgs&) const {}
  virtual void piece_statistics(KernelArgs&) const {}
  /// Combines rows of piece_statistics, in their order, into one of the same form, which is none
  /// of them. Unless overridden, rows are sums.
  virtual void combine_statistics(const std::vector<at::Tensor>& rows,
                                  const at::Tensor& combined) const;
  /// Unless overridden, kernels read the row as it is.
  virtual void merge_statistics(MergeArgs& args) const;
  virtual void update_buffers(UpdateArgs&) const {}
  /// Sums over the piece: rows are always combined by sum_statistics.
  virtual void piece_grad_statistics(KernelArgs&) const {}

  // Oracle.

  virtual at::Tensor reference(const ReferenceArgs& args) const = 0;

  // PyTorch.

  /// What it computes as an expression of TorchScript (script.h), at any size of the image; none
  /// where it has no such form.
  virtual std::optional<std::string> script(const ScriptArgs&) const { return std::nullopt; }
};

/// The key of a node's random numbers in one step.
inline RandomKey random_key(uint64_t seed, const std::string& name, int64_t step) {
  return RandomKey(seed).with(name).with(static_cast<uint64_t>(step));
}

/// Stores the sum of the rows, added in their order, in `sum`, which is none of them.
void sum_statistics(const std::vector<at::Tensor>& rows, const at::Tensor& sum);

}  // namespace tessera
