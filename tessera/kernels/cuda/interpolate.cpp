#include "tessera/kernels/interpolate.h"

#include "tessera/kernels/cuda/image_binding.h"
#include "tessera/kernels/cuda/interpolate_launch.h"
#include "tessera/kernels/cuda/pixel_binding.h"
#include "tessera/kernels/cuda/read_table.h"

namespace tessera {
namespace cuda {
namespace {

/// Outputs read inputs.
Terms terms_of_outputs(const AxisSources& sources) {
  Terms terms(sources.size());
  for (size_t output = 0; output < sources.size(); ++output)
    for (int tap = 0; tap < sources[output].num_taps; ++tap)
      if (const double weight = sources[output].weight[tap]; weight != 0)
        terms[output].push_back({sources[output].index[tap], weight});
  return terms;
}

/// The adjoint: inputs get from the outputs that read them, in the order of these.
Terms terms_of_inputs(const AxisSources& sources, int64_t num_inputs) {
  Terms terms(static_cast<size_t>(num_inputs));
  for (size_t output = 0; output < sources.size(); ++output)
    for (int tap = 0; tap < sources[output].num_taps; ++tap)
      if (const double weight = sources[output].weight[tap]; weight != 0)
        terms[static_cast<size_t>(sources[output].index[tap])].push_back(
            {static_cast<int64_t>(output), weight});
  return terms;
}

/// terms_along(axis) are those of the results. False where no kernel takes the images.
template <class TermsAlong>
bool sum_terms(const at::Tensor& from, const at::Tensor& to, const TermsAlong& terms_along) {
  const std::optional<PixelThreads> threads = pixel_threads(to, from, {});
  if (!threads) return false;
  InterpolateCall call{
      .threads = *threads, .axes = {}, .from = volume_of(from), .to = volume_of(to)};
  for (int axis = 0; axis < 3; ++axis)
    call.axes[axis] =
        read_table(terms_along(axis), threads->type == NumberType::kFloat64, to.device());
  launch_beside(to, launch_interpolation, call);
  return true;
}

void interpolate_piece(const PieceSources& sources, const at::Tensor& x, const at::Tensor& y) {
  const auto along = [&](int axis) { return terms_of_outputs(sources[axis]); };
  if (!sum_terms(x, y, along)) InterpolateKernels::kAten.interpolate_piece(sources, x, y);
}

void interpolate_piece_adjoint(const PieceSources& sources, const at::Tensor& grad_y,
                               const at::Tensor& grad_x) {
  const auto along = [&](int axis) {
    const int64_t of_image = grad_x.dim() - 3 + axis;
    return terms_of_inputs(sources[axis], of_image < 2 ? 1 : grad_x.size(of_image));
  };
  if (!sum_terms(grad_y, grad_x, along))
    InterpolateKernels::kAten.interpolate_piece_adjoint(sources, grad_y, grad_x);
}

constexpr InterpolateKernels kTable{.interpolate_piece = interpolate_piece,
                                    .interpolate_piece_adjoint = interpolate_piece_adjoint};

}  // namespace
}  // namespace cuda

const InterpolateKernels* const InterpolateKernels::kCuda = &cuda::kTable;

}  // namespace tessera
