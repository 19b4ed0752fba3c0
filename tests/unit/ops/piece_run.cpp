#include "tests/unit/ops/piece_run.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"
#include "tests/unit/ops/row_tree.h"

namespace tessera {
namespace {

constexpr int64_t kStep = 3;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensors cloned(const Tensors& tensors) {
  Tensors clones;
  for (const at::Tensor& tensor : tensors) clones.push_back(tensor.clone());
  return clones;
}

Tensors leaves(const Tensors& tensors) {
  Tensors result = cloned(tensors);
  for (at::Tensor& leaf : result)
    if (leaf.is_floating_point()) leaf.requires_grad_(true);
  return result;
}

Tensors gradients(const Tensors& leaves) {
  Tensors result;
  for (const at::Tensor& leaf : leaves)
    result.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf.detach()));
  return result;
}

class PieceRun {
 public:
  PieceRun(const Case& test, Draw& draw, const HarnessOptions& options)
      : test_(test),
        op_(test.op),
        draw_(draw),
        buffers_(cloned(test.buffers)),
        merged_(options.micro_batches),
        merged_grad_(options.micro_batches) {
    cut_into_pieces(options);
    for (const at::Tensor& input : test.inputs) grad_inputs_.push_back(at::zeros_like(input));
    // Not zero, so that a gradient which is stored instead of added is noticed.
    for (const at::Tensor& parameter : test.parameters)
      grad_parameters_.push_back(at::ones_like(parameter));
  }

  OpResult run() {
    c10::NoGradGuard no_grad;
    run_forward_statistics();
    for (Piece& piece : pieces_) run_forward(piece, Phase::kForward);
    for (Piece& piece : pieces_) recompute(piece);
    run_backward_statistics();
    for (const Piece& piece : pieces_) {
      run_input_gradient(piece);
      run_weight_gradient(piece);
    }
    for (at::Tensor& gradient : grad_parameters_) gradient.sub_(1);
    return {op_.is_loss() ? loss_ : gather_output(), grad_inputs_, grad_parameters_, buffers_};
  }

 private:
  struct Piece {
    Box box;
    size_t micro_batch = 0;
    at::Tensor output = {};
    at::Tensor saved = {};
  };

  /// No piece lies in two micro-batches, as in a program.
  void cut_into_pieces(const HarnessOptions& options) {
    for (size_t m = 0; m < merged_.size(); ++m) {
      ValueType type = test_.types.output;
      const Range samples = split(type.batch(), options.micro_batches, static_cast<int64_t>(m));
      type.axes[0].size = samples.size();
      for (Box box : cut_output(draw_, type, options)) {
        box[0] = box[0].shifted(samples.begin);
        pieces_.push_back({box, m});
      }
    }
  }

  KernelArgs base_args(const Piece& piece) const {
    KernelArgs args;
    args.name = &test_.name;
    args.types = &test_.types;
    args.seed = test_.seed;
    args.step = kStep;
    args.out_box = piece.box;
    args.inputs.resize(test_.inputs.size());
    args.grad_inputs.resize(test_.inputs.size());
    args.parameters = test_.parameters;
    args.buffers = buffers_;
    args.merged_statistics = merged_[piece.micro_batch];
    return args;
  }

  KernelArgs forward_args(const Piece& piece) {
    KernelArgs args = base_args(piece);
    for (size_t i = 0; i < args.inputs.size(); ++i) args.inputs[i] = read_input(i, piece.box);
    return args;
  }

  KernelArgs backward_args(const Piece& piece) {
    KernelArgs args = base_args(piece);
    for (size_t i = 0; i < args.inputs.size(); ++i)
      if (op_.keeps_input(static_cast<int>(i))) args.inputs[i] = read_input(i, piece.box);
    if (op_.keeps_output()) args.output = {strided_copy(draw_, piece.output), piece.box};
    if (!op_.is_loss())
      args.grad_output = {strided_copy(draw_, whole_output(test_.output_weights).view(piece.box)),
                          piece.box};
    args.saved = piece.saved;
    args.merged_grad_statistics = merged_grad_[piece.micro_batch];
    return args;
  }

  Operand whole_output(const at::Tensor& tensor) const {
    return {tensor, Box::whole(test_.types.output.shape())};
  }

  Operand read_input(size_t input, const Box& out_box) {
    const Box needed = op_.needed(static_cast<int>(input), out_box, test_.types);
    const Shape shape = test_.types.inputs[input].shape();
    const Operand whole{test_.inputs[input], Box::whole(shape)};
    if (op_.input_access(static_cast<int>(input)) == InputAccess::kStrided) {
      EXPECT_TRUE(whole.box.contains(needed)) << to_string(needed);
      const Box box = draw_readable_box(draw_, needed, shape);
      if (box.empty()) return {at::empty(box.shape(), whole.tensor.options()), box};
      return {strided_copy(draw_, whole.view(box)), box};
    }
    Operand dense{at::zeros(needed.shape(), whole.tensor.options()), needed};
    const Box inside = intersect(needed, whole.box);
    if (!inside.empty()) dense.view(inside).copy_(whole.view(inside));
    return dense;
  }

  /// Statistics of each micro-batch by itself; buffers are updated once, from all of them.
  void run_forward_statistics() {
    const Statistics statistics = op_.forward_statistics(test_.types);
    if (statistics.per_piece == 0) return;
    UpdateArgs update{&test_.types, {}, buffers_};
    for (size_t m = 0; m < merged_.size(); ++m) {
      Tensors rows;
      for (const Piece* piece : pieces_of(m)) {
        KernelArgs args = forward_args(*piece);
        args.piece_statistics = nan_row(statistics.per_piece);
        give_scratch(args, Phase::kPieceStatistics);
        op_.piece_statistics(args);
        rows.push_back(args.piece_statistics);
      }
      update.rows.push_back(combine_in_a_tree(
          draw_, rows,
          [&](const Rows& some, const at::Tensor& one) { op_.combine_statistics(some, one); }));
      MergeArgs merge{&test_.types, update.rows.back(), nan_row(statistics.merged)};
      op_.merge_statistics(merge);
      merged_[m] = merge.merged;
    }
    if (!test_.buffers.empty()) op_.update_buffers(update);
  }

  void run_backward_statistics() {
    const int64_t numbers = op_.backward_statistics(test_.types);
    if (numbers == 0) return;
    for (size_t m = 0; m < merged_.size(); ++m) {
      Tensors rows;
      for (const Piece* piece : pieces_of(m)) {
        KernelArgs args = backward_args(*piece);
        args.piece_grad_statistics = nan_row(numbers);
        give_scratch(args, Phase::kPieceGradStatistics);
        op_.piece_grad_statistics(args);
        rows.push_back(args.piece_grad_statistics);
      }
      merged_grad_[m] = combine_in_a_tree(draw_, rows, sum_statistics);
    }
  }

  static at::Tensor nan_row(int64_t numbers) { return at::full({numbers}, kNan, at::kDouble); }

  /// As many bytes as the kernel asks for, sometimes as few as it can do with, and not one of them
  /// zero: as real numbers they are NaN.
  void give_scratch(KernelArgs& args, Phase phase) const {
    const ScratchBytes wish = op_.scratch_bytes(phase, args.out_box, test_.types, test_.real);
    const int64_t bytes = draw_.between(0, 1) == 0 ? wish.least : wish.most;
    if (bytes > 0) args.scratch = at::full({bytes}, 0xff, at::kByte);
  }

  std::vector<const Piece*> pieces_of(size_t micro_batch) const {
    std::vector<const Piece*> pieces;
    for (const Piece& piece : pieces_)
      if (piece.micro_batch == micro_batch) pieces.push_back(&piece);
    return pieces;
  }

  void run_forward(Piece& piece, Phase phase) {
    KernelArgs args = forward_args(piece);
    give_scratch(args, phase);
    args.loss = loss_;
    args.output.box = piece.box;
    const Saved saved = op_.saved(piece.box, test_.types);
    if (saved.numel > 0) args.saved = at::zeros({saved.numel}, saved.type);
    Surrounded target;
    if (!op_.is_loss()) {
      target = surrounded(draw_, piece.box.shape(), output_type());
      args.output.tensor = target.view;
    }
    op_.forward(args);
    EXPECT_GE(op_.flops(piece.box, test_.types), 0);
    EXPECT_GE(op_.elements_moved(piece.box, test_.types), 0);
    piece.saved = args.saved;
    piece.output = args.output.tensor;
    if (op_.is_loss()) return;
    expect_tensor("output", args.output, output_type());
    EXPECT_TRUE(target.surroundings_untouched()) << "forward wrote outside its view";
  }

  /// Recomputed outputs take the place of kept ones, so the bits must be the same.
  void recompute(Piece& piece) {
    if (!op_.cheap_to_recompute() || op_.is_loss()) return;
    const Piece first = piece;
    run_forward(piece, Phase::kRecompute);
    EXPECT_TRUE(at::equal(piece.output, first.output)) << "recomputed with other bits";
    if (!first.saved.defined()) return;
    EXPECT_TRUE(at::equal(piece.saved, first.saved)) << "saved with other bits";
  }

  void run_input_gradient(const Piece& piece) {
    KernelArgs args = backward_args(piece);
    std::vector<Surrounded> targets(args.inputs.size());
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      args.grad_inputs[i].box = op_.needed(input, piece.box, test_.types);
      if (!op_.differentiable(input)) continue;
      targets[i] = surrounded(draw_, args.grad_inputs[i].box.shape(), test_.real);
      args.grad_inputs[i].tensor = targets[i].view;
    }
    give_scratch(args, Phase::kInputGradient);
    op_.input_gradient(args);
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      if (!op_.differentiable(static_cast<int>(i)) || args.grad_inputs[i].box.empty()) continue;
      EXPECT_TRUE(targets[i].surroundings_untouched()) << "gradient written outside its view";
      expect_tensor("gradient of input " + std::to_string(i), args.grad_inputs[i], test_.real);
      add_inside(args.grad_inputs[i], grad_inputs_[i]);
    }
  }

  void run_weight_gradient(const Piece& piece) {
    if (test_.parameters.empty()) return;
    KernelArgs args = backward_args(piece);
    args.grad_parameters = grad_parameters_;
    give_scratch(args, Phase::kWeightGradient);
    op_.weight_gradient(args);
  }

  at::ScalarType output_type() const {
    return test_.types.output.element == Element::kReal ? test_.real : at::kLong;
  }

  static void expect_tensor(const std::string& what, const Operand& operand, at::ScalarType type) {
    TESSERA_CHECK(operand.tensor.defined(), "{} is missing", what);
    EXPECT_EQ(operand.tensor.sizes().vec(), operand.box.shape()) << what;
    EXPECT_EQ(operand.tensor.scalar_type(), type) << what;
  }

  /// What lies outside the image is the gradient of the fill, which nobody wants.
  static void add_inside(const Operand& part, const at::Tensor& whole_tensor) {
    const Operand whole{whole_tensor, Box::whole(whole_tensor.sizes().vec())};
    const Box inside = intersect(part.box, whole.box);
    if (!inside.empty()) whole.view(inside).add_(part.view(inside));
  }

  at::Tensor gather_output() const {
    const at::Tensor whole = at::empty(test_.types.output.shape(), output_type());
    for (const Piece& piece : pieces_) whole_output(whole).view(piece.box).copy_(piece.output);
    return whole;
  }

  const Case& test_;
  const Op& op_;
  Draw& draw_;
  std::vector<Piece> pieces_;
  Tensors buffers_;
  Tensors grad_inputs_;
  Tensors grad_parameters_;
  Tensors merged_;       // per micro-batch
  Tensors merged_grad_;  // per micro-batch
  at::Tensor loss_ = at::zeros({}, at::kDouble);
};

}  // namespace

OpResult run_whole(const Case& test) {
  at::AutoGradMode enable_autograd(true);
  const ReferenceArgs args{
      &test.name,          test.seed, kStep, leaves(test.inputs), leaves(test.parameters),
      cloned(test.buffers)};
  const at::Tensor output = test.op.reference(args);
  const at::Tensor loss = test.op.is_loss() ? output : (output * test.output_weights).sum();
  if (loss.requires_grad()) loss.backward();
  return {output.detach(), gradients(args.inputs), gradients(args.parameters), args.buffers};
}

OpResult run_in_pieces(const Case& test, Draw& draw, const HarnessOptions& options) {
  return PieceRun(test, draw, options).run();
}

}  // namespace tessera
