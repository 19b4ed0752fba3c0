#include "tessera/kernels/layer_norm.h"

#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// In float64 and in the order of the axes, on which the order of additions depends: a view of
/// other strides has the same bits.
at::Tensor dense(const at::Tensor& image) { return image.to(at::kDouble).contiguous(); }

/// One or none of each channel.
at::Tensor times(const at::Tensor& image, const at::Tensor& weight) {
  if (!weight.defined()) return image;
  return image * aten::along_axis(weight.to(at::kDouble), 1, image.dim());
}

/// The pixels of x in float64, and what their distances from the mean were divided by.
struct Normalised {
  at::Tensor xhat, inverse_std;

  Normalised(const at::Tensor& x, double epsilon) {
    const at::Tensor wide = dense(x);
    const at::Tensor distance = wide - wide.mean(1, /*keepdim=*/true);
    inverse_std = (distance.square().mean(1, /*keepdim=*/true) + epsilon).sqrt_().reciprocal_();
    xhat = distance * inverse_std;
  }
};

}  // namespace

namespace aten {

void normalise_pixels(const at::Tensor& x, const PixelNorm& norm, const at::Tensor& y) {
  at::Tensor values = times(Normalised(x, norm.epsilon).xhat, norm.weight);
  if (norm.bias.defined()) values = values + along_axis(norm.bias.to(at::kDouble), 1, x.dim());
  y.copy_(values);
}

void normalise_pixels_gradient(const at::Tensor& x, const at::Tensor& grad_y, const PixelNorm& norm,
                               const at::Tensor& grad_x) {
  const Normalised pixels(x, norm.epsilon);
  const at::Tensor dxhat = times(dense(grad_y), norm.weight);
  const at::Tensor along = (dxhat * pixels.xhat).mean(1, /*keepdim=*/true);
  grad_x.copy_(pixels.inverse_std *
               (dxhat - dxhat.mean(1, /*keepdim=*/true) - pixels.xhat * along));
}

at::Tensor pixel_weight_gradients(const at::Tensor& x, const at::Tensor& grad_y,
                                  const PixelNorm& norm) {
  const std::vector<int64_t> axes = axes_of_sums(x);
  const at::Tensor dy = grad_y.to(at::kDouble);
  return at::stack({(dy * Normalised(x, norm.epsilon).xhat).sum(axes), dy.sum(axes)});
}

}  // namespace aten

const LayerNormKernels LayerNormKernels::kAten{
    .normalise_pixels = aten::normalise_pixels,
    .normalise_pixels_gradient = aten::normalise_pixels_gradient,
    .pixel_weight_gradients = aten::pixel_weight_gradients};

}  // namespace tessera
