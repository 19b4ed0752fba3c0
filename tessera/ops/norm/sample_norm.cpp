#include "tessera/ops/norm/sample_norm.h"

#include <cmath>

#include "tessera/ops/norm/norm.h"

namespace tessera {
namespace {

/// The part of a parameter of shape C x space that belongs to a box of the value.
at::Tensor slice(const at::Tensor& parameter, const Box& box) {
  Box part;
  for (int axis = 1; axis < box.num_axes(); ++axis) part.push_back(box[axis]);
  return Operand{parameter, Box::whole(parameter.sizes().vec())}.view(part);
}

int64_t pixels(const Box& box) {
  int64_t product = 1;
  for (int axis = 2; axis < box.num_axes(); ++axis) product *= box[axis].size();
  return product;
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

  /// Calls visit(cell, number of its channels in the box) for the cells that a box meets.
  template <class Visit>
  void for_cells(const Box& box, const Visit& visit) const {
    for (int64_t n = box[0].begin; n < box[0].end; ++n)
      for (int64_t begin = 0, group = 0; group < groups; ++group, begin += channels_per_group) {
        const Range held = intersect(box[1], Range{begin, begin + channels_per_group});
        if (!held.empty()) visit(n * groups + group, held.size());
      }
  }
};

SampleNorm::Cells SampleNorm::cells_of(const ValueType& type) const {
  const int64_t groups = num_groups(type.channels());
  return {type.batch(), groups, type.channels() / groups, pixels_per_sample(type)};
}

Statistics SampleNorm::forward_statistics(const NodeTypes& types) const {
  const int64_t numbers = 2 * cells_of(types.output).total();
  return {numbers, numbers};
}

/// After the numbers that are merged, a piece has its own sums for the gradients of the weights:
/// sending them costs less than reading input and gradient once more.
Statistics SampleNorm::backward_statistics(const NodeTypes& types) const {
  const int64_t numbers = 2 * cells_of(types.output).total();
  const int64_t of_weights = affine_ == Affine::kChannel ? 2 * types.output.channels() : 0;
  return {numbers + of_weights, numbers};
}

double SampleNorm::flops(const Box& out, const NodeTypes&) const {
  return 6 * static_cast<double>(out.volume());  // sum, distance, square, sum; then x * a + b
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
  for (int64_t cell = 0; cell < cells.total(); ++cell) {
    first_half(args.piece_statistics)[cell] = moments[cell].mean;
    second_half(args.piece_statistics)[cell] = moments[cell].m2;
  }
}

std::vector<Moments> SampleNorm::merged_moments(const MergeArgs& args) const {
  const Cells cells = cells_of(args.types->output);
  std::vector<Moments> moments(cells.total());
  for (size_t piece = 0; piece < args.out_boxes.size(); ++piece) {
    const Box& box = args.out_boxes[piece];
    const at::Tensor row = args.gathered[static_cast<int64_t>(piece)];
    const std::span<double> mean = first_half(row), m2 = second_half(row);
    cells.for_cells(box, [&](int64_t cell, int64_t channels) {
      moments[cell].merge({static_cast<double>(channels * pixels(box)), mean[cell], m2[cell]});
    });
  }
  return moments;
}

/// Leaves mean and 1 / sqrt(biased variance + epsilon).
void SampleNorm::merge_statistics(MergeArgs& args) const {
  const std::vector<Moments> moments = merged_moments(args);
  for (size_t cell = 0; cell < moments.size(); ++cell) {
    first_half(args.merged)[cell] = moments[cell].mean;
    second_half(args.merged)[cell] =
        1 / std::sqrt(moments[cell].m2 / moments[cell].count + epsilon_);
  }
}

void SampleNorm::update_buffers(MergeArgs& args) const { track(merged_moments(args), args); }

/// Weight 1 and bias 0 where each element has its own.
PlaneNorm SampleNorm::plane_norm(const KernelArgs& args) const {
  const Box& box = args.out_box;
  const size_t planes = static_cast<size_t>(box[0].size() * box[1].size());
  PlaneNorm norm{{box[1].size()},
                 std::vector<double>(planes),
                 std::vector<double>(planes),
                 std::vector<double>(planes, 1),
                 std::vector<double>(planes, 0)};
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
  normalise(args.inputs[0].view(args.out_box), plane_norm(args), y);
  if (affine_ == Affine::kElement)
    y.mul_(slice(args.parameters[0], args.out_box)).add_(slice(args.parameters[1], args.out_box));
}

/// The gradient of what plane_norm() gives.
at::Tensor SampleNorm::gradient_after_norm(const KernelArgs& args) const {
  const at::Tensor gradient = args.grad_output.view(args.out_box);
  return affine_ == Affine::kElement ? gradient * slice(args.parameters[0], args.out_box)
                                     : gradient;
}

/// Sums of dxhat and of dxhat * xhat for each cell, followed by those of dy and of dy * xhat for
/// each channel, where channels have weights.
void SampleNorm::sum_gradients(const KernelArgs& args, const at::Tensor& sums) const {
  sums.zero_();
  if (args.out_box.empty()) return;
  const PlaneNorm norm = plane_norm(args);
  std::vector<double> dy(norm.mean.size()), dy_xhat(norm.mean.size());
  plane_gradient_sums(args.inputs[0].view(args.out_box), gradient_after_norm(args), norm, dy,
                      dy_xhat);
  const Cells cells = cells_of(args.types->output);
  double* of_cells = sums.data_ptr<double>();
  double* of_channels = of_cells + 2 * cells.total();
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

void SampleNorm::merge_grad_statistics(MergeArgs& args) const {
  args.merged.zero_();
  for (int64_t piece = 0; piece < args.gathered.size(0); ++piece)
    args.merged.add_(args.gathered[piece].narrow(0, 0, args.merged.numel()));
}

void SampleNorm::input_gradient(KernelArgs& args) const {
  if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
  const PlaneNorm norm = plane_norm(args);
  std::vector<double> mean_dxhat(norm.mean.size()), mean_dxhat_xhat(norm.mean.size());
  const Cells cells = cells_of(args.types->output);
  cells.for_planes(args.out_box, [&](size_t plane, int64_t cell, int64_t) {
    mean_dxhat[plane] = first_half(args.merged_grad_statistics)[cell] / cells.count();
    mean_dxhat_xhat[plane] = second_half(args.merged_grad_statistics)[cell] / cells.count();
  });
  normalise_gradient(args.inputs[0].view(args.out_box), gradient_after_norm(args), norm, mean_dxhat,
                     mean_dxhat_xhat, args.grad_inputs[0].view(args.out_box));
}

/// The piece's own sums, never the merged ones: gradients are summed over the ranks later.
void SampleNorm::weight_gradient(KernelArgs& args) const {
  if (affine_ == Affine::kElement) return add_element_gradients(args);
  at::Tensor sums = args.piece_grad_statistics;
  if (!sums.defined()) {
    sums = at::empty({backward_statistics(*args.types).per_piece}, at::kDouble);
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
  const at::Tensor xhat = at::empty(gradient.sizes(), gradient.options());
  normalise(args.inputs[0].view(args.out_box), plane_norm(args), xhat);
  slice(args.grad_parameters[0], args.out_box).add_(xhat.mul_(gradient).sum(0));
  slice(args.grad_parameters[1], args.out_box).add_(gradient.sum(0));
}

}  // namespace tessera
