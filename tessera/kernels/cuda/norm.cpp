#include "tessera/kernels/norm.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <limits>

#include "tessera/kernels/cuda/image_binding.h"
#include "tessera/kernels/cuda/norm_launch.h"

namespace tessera {
namespace cuda {
namespace {

/// Pixels of a thread: as many as sums in float32 bear, and as pay for the numbers of its channels.
constexpr int kPixelsOfSums = 64, kPixelsOfPass = 32;

template <class Call>
void launch_beside(const at::Tensor& x, const Call& call) {
  const c10::cuda::CUDAGuard here(x.device());
  C10_CUDA_CHECK(launch(call, c10::cuda::getCurrentCUDAStream()));
}

CellTable cells_of(const at::Tensor& table) {
  if (!table.defined()) return {};
  return {table.data_ptr<double>(), table.stride(0), table.stride(1)};
}

ChannelTable channels_of(const at::Tensor& table, double otherwise) {
  if (!table.defined()) return {.otherwise = otherwise};
  return {table.data_ptr(), *number_type(table), table.stride(0), otherwise};
}

/// Of a type that kernels read.
at::Tensor readable(const at::Tensor& numbers) {
  return !numbers.defined() || number_type(numbers) ? numbers : numbers.to(at::kDouble);
}

/// Keeps the numbers for as long as it lives.
struct BoundNorm {
  at::Tensor weight, bias;
  PlaneNumbers numbers;

  BoundNorm(const PlaneNorm& norm, int64_t channels)
      : weight(readable(norm.weight)), bias(readable(norm.bias)) {
    constexpr double kNoLimit = std::numeric_limits<double>::quiet_NaN();
    numbers = {.mean = cells_of(norm.mean),
               .inverse_std = cells_of(norm.inverse_std),
               .channels_of_cell = static_cast<int>(channels / norm.mean.size(1)),
               .weight = channels_of(weight, 1),
               .bias = channels_of(bias, 0),
               .low = norm.activation == NormActivation::kNone ? kNoLimit : 0,
               .high = norm.activation == NormActivation::kRelu6 ? 6 : kNoLimit};
  }
};

at::Tensor parts_of(const ImageTiles& tiles, const at::Tensor& beside) {
  return at::empty({tiles.rows * tiles.channels * tiles.pixel_tiles, 2},
                   beside.options().dtype(at::kDouble));
}

/// Which the kernels look at only to see what an activation let through.
at::Tensor output_that_tells(const PlaneNorm& norm, const at::Tensor& y) {
  return norm.activation == NormActivation::kNone ? at::Tensor() : y;
}

void plane_moments(const at::Tensor& x, const at::Tensor& moments) {
  const std::optional<BoundImages> bound = bind_images({x}, moments.size(0));
  if (!bound) return NormKernels::kAten.plane_moments(x, moments);
  const ImageTiles tiles = bound->tiles(kPixelsOfSums);
  const at::Tensor parts = parts_of(tiles, moments);
  launch_beside(x, MomentsCall{.type = bound->type,
                               .tiles = tiles,
                               .x = bound->images[0],
                               .parts = static_cast<PairOfSums*>(parts.data_ptr()),
                               .moments = moments.data_ptr<double>(),
                               .cells = moments.size(1),
                               .row_stride = moments.stride(0),
                               .cell_stride = moments.stride(1),
                               .number_stride = moments.stride(2)});
}

void normalise(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& added,
               const at::Tensor& y) {
  const std::optional<BoundImages> bound = bind_images({x, added, y}, norm.mean.size(0));
  if (!bound) return NormKernels::kAten.normalise(x, norm, added, y);
  const BoundNorm numbers(norm, x.size(1));
  launch_beside(x, NormaliseCall{.type = bound->type,
                                 .tiles = bound->tiles(kPixelsOfPass),
                                 .norm = numbers.numbers,
                                 .x = bound->images[0],
                                 .added = bound->images[1],
                                 .y = bound->images[2]});
}

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                         const PlaneNorm& norm, const at::Tensor& sum_dy,
                         const at::Tensor& sum_dy_xhat) {
  const std::optional<BoundImages> bound =
      bind_images({x, output_that_tells(norm, y), grad_y}, norm.mean.size(0));
  if (!bound)
    return NormKernels::kAten.plane_gradient_sums(x, y, grad_y, norm, sum_dy, sum_dy_xhat);
  const BoundNorm numbers(norm, x.size(1));
  const ImageTiles tiles = bound->tiles(kPixelsOfSums);
  const at::Tensor parts = parts_of(tiles, sum_dy);
  launch_beside(x, GradientSumsCall{.type = bound->type,
                                    .tiles = tiles,
                                    .norm = numbers.numbers,
                                    .x = bound->images[0],
                                    .y = bound->images[1],
                                    .grad_y = bound->images[2],
                                    .parts = static_cast<PairOfSums*>(parts.data_ptr()),
                                    .sum_dy = cells_of(sum_dy),
                                    .sum_dy_xhat = cells_of(sum_dy_xhat)});
}

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, const at::Tensor& mean_dxhat,
                        const at::Tensor& mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added) {
  const std::optional<BoundImages> bound =
      bind_images({x, output_that_tells(norm, y), grad_y, grad_x, grad_added}, norm.mean.size(0));
  if (!bound)
    return NormKernels::kAten.normalise_gradient(x, y, grad_y, norm, mean_dxhat, mean_dxhat_xhat,
                                                 grad_x, grad_added);
  const BoundNorm numbers(norm, x.size(1));
  launch_beside(x, NormGradientCall{.type = bound->type,
                                    .tiles = bound->tiles(kPixelsOfPass),
                                    .norm = numbers.numbers,
                                    .mean_dxhat = cells_of(mean_dxhat),
                                    .mean_dxhat_xhat = cells_of(mean_dxhat_xhat),
                                    .x = bound->images[0],
                                    .y = bound->images[1],
                                    .grad_y = bound->images[2],
                                    .grad_x = bound->images[3],
                                    .grad_added = bound->images[4]});
}

constexpr NormKernels kTable{.plane_moments = plane_moments,
                             .normalise = normalise,
                             .plane_gradient_sums = plane_gradient_sums,
                             .normalise_gradient = normalise_gradient};

}  // namespace
}  // namespace cuda

const NormKernels* const NormKernels::kCuda = &cuda::kTable;

}  // namespace tessera
