#include "tessera/kernels/interpolate.h"

#include <algorithm>

#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

struct Read {
  int64_t index;
  double weight;
};

/// For each result along an axis, what it is the sum of.
using Reads = std::vector<std::vector<Read>>;

/// Outputs read inputs.
Reads reads_of_outputs(const AxisSources& sources) {
  Reads reads(sources.size());
  for (size_t output = 0; output < sources.size(); ++output)
    for (int tap = 0; tap < sources[output].num_taps; ++tap)
      reads[output].push_back({sources[output].index[tap], sources[output].weight[tap]});
  return reads;
}

/// The adjoint: inputs get from the outputs that read them. A list of these for each input is a sum
/// in one order, which writing to an input from several outputs at once would not be.
Reads reads_of_inputs(const AxisSources& sources, int64_t num_inputs) {
  Reads reads(static_cast<size_t>(num_inputs));
  for (size_t output = 0; output < sources.size(); ++output)
    for (int tap = 0; tap < sources[output].num_taps; ++tap)
      reads[static_cast<size_t>(sources[output].index[tap])].push_back(
          {static_cast<int64_t>(output), sources[output].weight[tap]});
  return reads;
}

/// All first reads, all second ones, and so on; results that have fewer read anything with the
/// weight 0.
struct ReadTable {
  int64_t count = 0;
  at::Tensor index, weight;  // count * results

  ReadTable(const Reads& reads, const at::Tensor& beside) {
    for (const std::vector<Read>& of_result : reads)
      count = std::max<int64_t>(count, std::ssize(of_result));
    std::vector<int64_t> indices;
    std::vector<double> weights;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      for (const std::vector<Read>& of_result : reads) {
        const Read read = i < of_result.size() ? of_result[i] : Read{0, 0};
        indices.push_back(read.index);
        weights.push_back(read.weight);
      }
    index = aten::indices(indices, beside);
    weight = at::tensor(weights, beside.scalar_type()).to(beside.device());
  }
};

/// The sums along one axis. What has the weight 0 is not read, be it a number or none.
at::Tensor sum_reads(const at::Tensor& image, int64_t axis, const Reads& reads) {
  constexpr int64_t kAtOnce = 4;  // so that copies stay few times as large as the result
  const ReadTable table(reads, image);
  const int64_t num_results = std::ssize(reads);
  std::vector<int64_t> sizes = image.sizes().vec();
  sizes[static_cast<size_t>(axis)] = num_results;
  const at::Tensor sums = at::zeros(sizes, image.options());
  for (int64_t first = 0; first < table.count; first += kAtOnce) {
    const int64_t some = std::min(kAtOnce, table.count - first);
    const auto part = [&](const at::Tensor& of_table) {
      return of_table.narrow(0, first * num_results, some * num_results);
    };
    const at::Tensor weight = aten::along_axis(part(table.weight), axis, image.dim());
    const at::Tensor terms =
        (image.index_select(axis, part(table.index)) * weight).masked_fill_(weight == 0, 0);
    sums.add_(terms.unflatten(axis, {some, num_results}).sum(axis));
  }
  return sums;
}

/// Narrow numbers would round each addition.
at::Tensor for_sums(const at::Tensor& image) {
  return image.scalar_type() == at::kBFloat16 ? image.to(at::kFloat) : image;
}

/// The sources along axis `axis` of an image.
const AxisSources& sources_along(const PieceSources& sources, int64_t axis,
                                 const at::Tensor& image) {
  return sources[static_cast<size_t>(3 + axis - image.dim())];
}

}  // namespace

namespace aten {

void interpolate_piece(const PieceSources& sources, const at::Tensor& x, const at::Tensor& y) {
  at::Tensor image = for_sums(x);
  for (int64_t axis = 2; axis < x.dim(); ++axis)
    image = sum_reads(image, axis, reads_of_outputs(sources_along(sources, axis, x)));
  y.copy_(image);
}

void interpolate_piece_adjoint(const PieceSources& sources, const at::Tensor& grad_y,
                               const at::Tensor& grad_x) {
  at::Tensor image = for_sums(grad_y);
  for (int64_t axis = 2; axis < grad_y.dim(); ++axis)
    image = sum_reads(image, axis,
                      reads_of_inputs(sources_along(sources, axis, grad_y), grad_x.size(axis)));
  grad_x.copy_(image);
}

}  // namespace aten

const InterpolateKernels InterpolateKernels::kAten{
    .interpolate_piece = aten::interpolate_piece,
    .interpolate_piece_adjoint = aten::interpolate_piece_adjoint};

}  // namespace tessera
