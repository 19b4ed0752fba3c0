#pragma once
// Sums over windows that connect two images, a coarse and a fine one:
//
//   coarse position p, tap t  ◄──►  fine position  p * stride + t * dilation
//
// A convolution reads the fine image and writes the coarse one, a transposed convolution the other
// way round, and the gradient of either is the other. So three kernels are all that both operators
// need, forward and backward. Images are views of any strides; what a window reads outside an image
// is zero.
//
// Example, a 3x3 convolution of an image with its halo:
//   const ConvolutionShape shape{.stride = {1, 1}, .dilation = {1, 1}};
//   convolve(shape, x, weight, bias, y, scratch);
//   convolve_transposed(shape, dy, weight, {}, dx, scratch);
//   add_convolution_weight_gradient(shape, x, dy, dw, scratch);

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/base/scratch_bytes.h"
#include "tessera/kernels/kernel.h"

namespace tessera {

/// How sums over 3x3 windows of stride 1 are computed. Winograd's tiles take a quarter of the
/// products, and round a little more.
enum class ConvolutionMethod {
  kAuto,      // by tiles where that is faster
  kDirect,    // always product by product
  kWinograd,  // by tiles wherever that is possible
};

/// One entry for each spatial axis.
struct ConvolutionShape {
  std::vector<int64_t> stride, dilation;
  int64_t groups = 1;
  /// Where the fine image's view begins, in positions of the formula above; empty: at zero.
  std::vector<int64_t> fine_begin = {};
  ConvolutionMethod method = ConvolutionMethod::kAuto;
};

/// Whether images may be of type bf16: their numbers are multiplied as they are, with weights that
/// are rounded to bf16 on the way, and sums are float32. Weights, their gradients and biases lie in
/// float32.
bool multiplies_bf16(const ConvolutionShape& shape, at::DeviceType device);

/// What sums over windows ask for, either way. `type` is that of the images. With less they read
/// their images more than once. Only loops for the CPU ask for any.
ScratchBytes convolution_scratch_bytes(const ConvolutionShape& shape, at::IntArrayRef weight_shape,
                                       at::ScalarType type, at::DeviceType device = at::kCPU);

/// What the gradient of the weight asks for, with a coarse image of this shape.
ScratchBytes convolution_gradient_scratch_bytes(const ConvolutionShape& shape,
                                                at::IntArrayRef weight_shape,
                                                at::IntArrayRef coarse_shape, at::ScalarType type,
                                                at::DeviceType device = at::kCPU);

struct ConvolutionKernels {
  /// coarse[n, k, p] = bias[k] + Σ fine[n, c, p * stride + t * dilation] weight[k, c, t]. The
  /// weight is [coarse channels, fine channels / groups, kernel...]; the bias may be undefined.
  void (*convolve)(const ConvolutionShape& shape, const at::Tensor& fine, const at::Tensor& weight,
                   const at::Tensor& bias, const at::Tensor& coarse, const at::Tensor& scratch);
  /// fine[n, c, q] = bias[c] + Σ coarse[n, k, p] weight[k, c, t] over all p and t with
  /// p * stride + t * dilation = q.
  void (*convolve_transposed)(const ConvolutionShape& shape, const at::Tensor& coarse,
                              const at::Tensor& weight, const at::Tensor& bias,
                              const at::Tensor& fine, const at::Tensor& scratch);
  /// Adds Σ coarse[n, k, p] fine[n, c, p * stride + t * dilation] to weight_gradient[k, c, t].
  void (*add_convolution_weight_gradient)(const ConvolutionShape& shape, const at::Tensor& fine,
                                          const at::Tensor& coarse,
                                          const at::Tensor& weight_gradient,
                                          const at::Tensor& scratch);

  static const ConvolutionKernels kCpu;
  static const ConvolutionKernels kAten;
  static const ConvolutionKernels* const kCuda;
};
inline constexpr Kernel<&ConvolutionKernels::convolve> convolve;
inline constexpr Kernel<&ConvolutionKernels::convolve_transposed> convolve_transposed;
inline constexpr Kernel<&ConvolutionKernels::add_convolution_weight_gradient>
    add_convolution_weight_gradient;

}  // namespace tessera
