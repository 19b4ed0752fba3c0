#include "tessera/ops/norm/sample_norm.h"

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
  int64_t of_plane(int64_t n, int64_t c) const { return n * groups + c / channels_per_group; }

  /// Calls visit(plane, cell, channel) for the planes of a box that is not empty, in the order of
  /// the arrays of a PlaneNorm with an entry for each of them.
  template <class Visit>
  void for_planes(const Box& box, const Visit& visit) const {
    size_t plane = 0;
    for (int64_t n = box[0].begin; n < box[0].end; ++n)
      for (int64_t c = box[1].begin; c < box[1].end; ++c, ++plane) visit(plane, of_plane(n, c), c);
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
                                       at::ScalarType real) const {
  const bool backward = phase == Phase::kPieceGradStatistics || phase == Phase::kInputGradient ||
                        phase == Phase::kWeightGradient;
  return backward && affine_ == Affine::kElement ? Scratch::bytes_of(out.volume(), real) : 0;
}

void SampleNorm::piece_statistics(KernelArgs& args) const {
  args.piece_statistics.zero_();
  const Box& box = args.out_box;
  if (box.empty()) return;
  std::vector<Moments> planes(box[0].size() * box[1].size());
  plane_moments(args.inputs[0].view(box), {box[1].size()}, planes);
  const Cells cells = cells_of(args.types->output);
  std::vector<Moments> moments(cells.total());
  cells.for_planes(
      box, [&](size_t plane, int64_t cell, int64_t) { moments[cell].merge(planes[plane]); });
  write_moments(moments, args.piece_statistics);
}

void SampleNorm::combine_statistics(const std::vector<at::Tensor>& rows,
                                    const at::Tensor& combined) const {
  combine_moments(rows, combined);
}

/// Leaves mean and 1 / sqrt(biased variance + epsilon).
void SampleNorm::merge_statistics(MergeArgs& args) const {
  leave_mean_and_inverse_std(args, epsilon_);
}

void SampleNorm::update_buffers(UpdateArgs& args) const { track(moments_of_batch(args), args); }

/// Weight 1 and bias 0 where each element has its own.
PlaneNorm SampleNorm::plane_norm(const KernelArgs& args) const {
  const Box& box = args.out_box;
  const size_t planes = static_cast<size_t>(box[0].size() * box[1].size());
  PlaneNorm norm{{box[1].size()},
                 std::vector<double>(planes),
                 std::vector<double>(planes),
                 std::vector<double>(planes, 1),
                 std::vector<double>(planes, 0),
                 tail().activation};
  std::vector<double> weight, bias;
  if (affine_ == Affine::kChannel) {
    weight = entries(args.parameters[0], box[1]);
    bias = entries(args.parameters[1], box[1]);
  }
  const Cells cells = cells_of(args.types->output);
  cells.for_planes(box, [&](size_t plane, int64_t cell, int64_t channel) {
    norm.mean[plane] = first_half(args.merged_statistics)[cell];
    norm.inverse_std[plane] = second_half(args.merged_statistics)[cell];
    if (affine_ != Affine::kChannel) return;
    norm.weight[plane] = weight[channel - box[1].begin];
    norm.bias[plane] = bias[channel - box[1].begin];
  });
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
  const PlaneNorm norm = plane_norm(args);
  std::vector<double> dy(norm.mean.size()), dy_xhat(norm.mean.size());
  plane_gradient_sums(args.inputs[0].view(args.out_box), kept_output(args),
                      gradient_after_norm(args), norm, dy, dy_xhat);
  const Cells cells = cells_of(args.types->output);
  const std::span<double> of_cells = row_numbers(sums);
  const std::span<double> of_channels = of_cells.subspan(2 * cells.total());
  const int64_t channels = args.types->output.channels();
  cells.for_planes(args.out_box, [&](size_t plane, int64_t cell, int64_t channel) {
    of_cells[cell] += norm.weight[plane] * dy[plane];
    of_cells[cells.total() + cell] += norm.weight[plane] * dy_xhat[plane];
    if (affine_ != Affine::kChannel) return;
    of_channels[channel] += dy[plane];
    of_channels[channels + channel] += dy_xhat[plane];
  });
}

void SampleNorm::piece_grad_statistics(KernelArgs& args) const {
  sum_gradients(args, args.piece_grad_statistics);
}

void SampleNorm::input_gradient(KernelArgs& args) const {
  if (args.out_box.empty() || !wants_grad_x(args)) return;
  const PlaneNorm norm = plane_norm(args);
  std::vector<double> mean_dxhat(norm.mean.size()), mean_dxhat_xhat(norm.mean.size());
  const Cells cells = cells_of(args.types->output);
  const std::span<double> sums = row_numbers(args.merged_grad_statistics);
  cells.for_planes(args.out_box, [&](size_t plane, int64_t cell, int64_t) {
    mean_dxhat[plane] = sums[cell] / cells.count();
    mean_dxhat_xhat[plane] = sums[cells.total() + cell] / cells.count();
  });
  normalise_gradient(args.inputs[0].view(args.out_box), kept_output(args),
                     gradient_after_norm(args), norm, mean_dxhat, mean_dxhat_xhat,
                     args.grad_inputs[0].view(args.out_box), grad_added(args));
}

/// The piece's own sums, never the merged ones: gradients are summed over the ranks later.
void SampleNorm::weight_gradient(KernelArgs& args) const {
  if (affine_ == Affine::kElement) return add_element_gradients(args);
  at::Tensor sums = args.piece_grad_statistics;
  if (!sums.defined()) {
    sums = at::empty({backward_statistics(*args.types)}, at::kDouble);
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
