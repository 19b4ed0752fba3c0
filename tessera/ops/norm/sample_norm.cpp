#include "tessera/ops/norm/sample_norm.h"

#include "tessera/base/error.h"
#include "tessera/kernels/scratch.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {
namespace {

/// The part of a parameter of shape C x space that belongs to a box of the value.
at::Tensor slice(const at::Tensor& parameter, const Box& box) {
  Box part;
  for (int axis = 1; axis < box.num_axes(); ++axis) part.push_back(box[axis]);
  return Operand{parameter, Box::whole(parameter.sizes().vec())}.view(part);
}

}  // namespace

/// What shares statistics: a group of a sample. Cell n * groups + g.
struct SampleNorm::Cells {
  int64_t samples = 0;
  int64_t groups = 0;
  int64_t channels_per_group = 0;
  int64_t pixels = 0;

  int64_t total() const { return samples * groups; }
  double count() const { return static_cast<double>(channels_per_group * pixels); }

  /// Of numbers of all cells, those of a box that is not empty: its samples x its groups. More axes
  /// may follow.
  at::Tensor of_box(const at::Tensor& numbers, const Box& box) const {
    TESSERA_CHECK(box[1].begin % channels_per_group == 0 && box[1].end % channels_per_group == 0,
                  "piece {} cuts groups of {} channels", to_string(box), channels_per_group);
    return numbers.unflatten(0, at::IntArrayRef{samples, groups})
        .narrow(0, box[0].begin, box[0].size())
        .narrow(1, box[1].begin / channels_per_group, box[1].size() / channels_per_group);
  }
};

SampleNorm::Cells SampleNorm::cells_of(const ValueType& type) const {
  const int64_t groups = num_groups(type.channels());
  return {type.batch(), groups, type.channels() / groups, pixels_per_sample(type)};
}

Statistics SampleNorm::forward_statistics(const NodeTypes& types) const {
  const int64_t cells = cells_of(types.output).total();
  return {kNumbersPerCell * cells, 2 * cells};
}

/// After the numbers that input_gradient reads, a piece has its own sums for the gradients of the
/// weights: sending them costs less than reading input and gradient once more.
int64_t SampleNorm::backward_statistics(const NodeTypes& types) const {
  const int64_t of_weights = affine_ == Affine::kChannel ? 2 * types.output.channels() : 0;
  return 2 * cells_of(types.output).total() + of_weights;
}

/// Where each element has a weight: the gradient times the weights, or the normalised input.
ScratchBytes SampleNorm::scratch_bytes(Phase phase, const Box& out, const NodeTypes&,
                                       const Numbers& numbers) const {
  const bool backward = phase == Phase::kPieceGradStatistics || phase == Phase::kInputGradient ||
                        phase == Phase::kWeightGradient;
  return backward && affine_ == Affine::kElement ? Scratch::bytes_of(out.volume(), numbers.type)
                                                 : 0;
}

void SampleNorm::piece_statistics(KernelArgs& args) const {
  args.piece_statistics.zero_();
  const Box& box = args.out_box;
  if (box.empty()) return;
  const Cells cells = cells_of(args.types->output);
  plane_moments(args.inputs[0].view(box), cells.of_box(cells_of_row(args.piece_statistics), box));
}

void SampleNorm::combine_statistics(const std::vector<at::Tensor>& rows,
                                    const at::Tensor& combined) const {
  combine_moments(rows, combined);
}

/// Leaves mean and 1 / sqrt(biased variance + epsilon).
void SampleNorm::merge_statistics(MergeArgs& args) const {
  leave_mean_and_inverse_std(args, epsilon_);
}

void SampleNorm::update_buffers(UpdateArgs& args) const {
  const Cells cells = cells_of(args.types->output);
  track(moments_of_batch(args).view({cells.samples, cells.groups, kNumbersPerCell}), args);
}

/// Without weight and bias where each element has its own.
PlaneNorm SampleNorm::plane_norm(const KernelArgs& args) const {
  const Box& box = args.out_box;
  const Cells cells = cells_of(args.types->output);
  const auto of_box = [&](const at::Tensor& numbers) {
    return cells.of_box(numbers, box).contiguous();
  };
  PlaneNorm norm{of_box(first_half(args.merged_statistics)),
                 of_box(second_half(args.merged_statistics)),
                 {},
                 {},
                 tail().activation};
  if (affine_ == Affine::kChannel) {
    norm.weight = entries(args.parameters[0], box[1]);
    norm.bias = entries(args.parameters[1], box[1]);
  }
  return norm;
}

void SampleNorm::forward(KernelArgs& args) const {
  if (args.out_box.empty()) return;
  const at::Tensor y = args.output.view(args.out_box);
  normalise(args.inputs[0].view(args.out_box), plane_norm(args), added(args), y);
  if (affine_ == Affine::kElement)
    y.mul_(slice(args.parameters[0], args.out_box)).add_(slice(args.parameters[1], args.out_box));
}

/// The gradient of what plane_norm() gives.
at::Tensor SampleNorm::gradient_after_norm(const KernelArgs& args) const {
  const at::Tensor gradient = args.grad_output.view(args.out_box);
  if (affine_ != Affine::kElement) return gradient;
  at::Tensor product = Scratch(args.scratch).take(gradient.sizes(), gradient.scalar_type());
  return at::mul_out(product, gradient, slice(args.parameters[0], args.out_box));
}

/// Sums of dxhat and of dxhat * xhat for each cell, followed by those of dy and of dy * xhat for
/// each channel, where channels have weights.
void SampleNorm::sum_gradients(const KernelArgs& args, const at::Tensor& sums) const {
  sums.zero_();
  if (args.out_box.empty()) return;
  const Box& box = args.out_box;
  const PlaneNorm norm = plane_norm(args);
  const at::Tensor of_planes =
      at::empty({2, box[0].size(), box[1].size()}, sums.options());  // dy, then dy * xhat
  plane_gradient_sums(args.inputs[0].view(box), kept_output(args), gradient_after_norm(args), norm,
                      of_planes[0], of_planes[1]);
  const Cells cells = cells_of(args.types->output);
  const at::Tensor of_gradient = norm.weight.defined() ? of_planes * norm.weight : of_planes;
  const int64_t channels = args.types->output.channels();
  for (int64_t which = 0; which < 2; ++which) {
    const at::Tensor of_cells = sums.narrow(0, which * cells.total(), cells.total());
    cells.of_box(of_cells, box)
        .copy_(of_gradient[which].unflatten(1, {-1, cells.channels_per_group}).sum(2));
    if (affine_ != Affine::kChannel) continue;
    const at::Tensor of_channels = sums.narrow(0, 2 * cells.total() + which * channels, channels);
    entries(of_channels, box[1]).copy_(of_planes[which].sum(0));
  }
}

void SampleNorm::piece_grad_statistics(KernelArgs& args) const {
  sum_gradients(args, args.piece_grad_statistics);
}

void SampleNorm::input_gradient(KernelArgs& args) const {
  if (args.out_box.empty() || !wants_grad_x(args)) return;
  const Cells cells = cells_of(args.types->output);
  const auto means = [&](int64_t which) {
    const at::Tensor sums =
        args.merged_grad_statistics.narrow(0, which * cells.total(), cells.total());
    return (cells.of_box(sums, args.out_box) / cells.count()).contiguous();
  };
  normalise_gradient(args.inputs[0].view(args.out_box), kept_output(args),
                     gradient_after_norm(args), plane_norm(args), means(0), means(1),
                     args.grad_inputs[0].view(args.out_box), grad_added(args));
}

/// The piece's own sums, never the merged ones: gradients are summed over the ranks later.
void SampleNorm::weight_gradient(KernelArgs& args) const {
  if (affine_ == Affine::kElement) return add_element_gradients(args);
  at::Tensor sums = args.piece_grad_statistics;
  if (!sums.defined()) {
    sums = at::empty({backward_statistics(*args.types)},
                     args.grad_parameters[0].options().dtype(at::kDouble));
    sum_gradients(args, sums);
  }
  const int64_t channels = args.types->output.channels();
  const int64_t first = sums.numel() - 2 * channels;
  const at::Tensor &grad_weight = args.grad_parameters[0], &grad_bias = args.grad_parameters[1];
  grad_weight.add_(sums.narrow(0, first + channels, channels).to(grad_weight.scalar_type()));
  grad_bias.add_(sums.narrow(0, first, channels).to(grad_bias.scalar_type()));
}

void SampleNorm::add_element_gradients(const KernelArgs& args) const {
  if (args.out_box.empty()) return;
  const at::Tensor gradient = args.grad_output.view(args.out_box);
  const at::Tensor xhat = Scratch(args.scratch).take(gradient.sizes(), gradient.scalar_type());
  normalise(args.inputs[0].view(args.out_box), plane_norm(args), {}, xhat);
  const at::Tensor grad_weight = slice(args.grad_parameters[0], args.out_box);
  const at::Tensor grad_bias = slice(args.grad_parameters[1], args.out_box);
  for (int64_t n = 0; n < gradient.size(0); ++n) {
    grad_weight.addcmul_(xhat[n], gradient[n]);
    grad_bias.add_(gradient[n]);
  }
}

}  // namespace tessera
