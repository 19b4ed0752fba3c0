#include "tessera/kernels/norm.h"

#include "tessera/kernels/aten/moments_over.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// Numbers of samples x cells beside an image: one for each channel, and axes of size 1 for space.
at::Tensor beside(const at::Tensor& image, const at::Tensor& cells) {
  const int64_t channels = image.size(1) / cells.size(1);
  at::Tensor planes = channels == 1 ? cells : cells.repeat_interleave(channels, 1);
  while (planes.dim() < image.dim()) planes = planes.unsqueeze(-1);
  return planes;
}

/// The same of numbers of the channels; `otherwise` where there are none.
at::Tensor beside_channels(const at::Tensor& image, const at::Tensor& numbers, double otherwise) {
  if (!numbers.defined()) return at::scalar_tensor(otherwise, image.options().dtype(at::kDouble));
  return beside(image, numbers.to(at::kDouble).unsqueeze(0));
}

at::ScalarType computing_type(const at::Tensor& image) {
  return image.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// x * scale + shift, which are rounded to the computing type once.
struct ScaleAndShift {
  at::Tensor scale, shift;

  ScaleAndShift(const at::Tensor& x, const PlaneNorm& norm) {
    const at::Tensor exact = beside_channels(x, norm.weight, 1) * beside(x, norm.inverse_std);
    scale = exact.to(computing_type(x));
    shift = (beside_channels(x, norm.bias, 0) - beside(x, norm.mean) * exact).to(computing_type(x));
  }
  at::Tensor operator()(const at::Tensor& x) const {
    return x.to(scale.scalar_type()) * scale + shift;
  }
};

at::Tensor after_activation(NormActivation activation, const at::Tensor& values) {
  if (activation == NormActivation::kRelu) return at::relu(values);
  return activation == NormActivation::kRelu6 ? at::hardtanh(values, 0, 6) : values;
}

/// Before the activation, in the computing type.
at::Tensor before_activation(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                             const PlaneNorm& norm) {
  const at::Tensor gradient = grad_y.to(computing_type(x));
  if (norm.activation == NormActivation::kNone) return gradient;
  const at::Tensor values = y.defined() ? y : ScaleAndShift(x, norm)(x);
  at::Tensor stopped = values <= 0;
  if (norm.activation == NormActivation::kRelu6) stopped = stopped.logical_or(values >= 6);
  return gradient.masked_fill(stopped, 0);
}

/// Stores sums over space, and over samples that share statistics: samples x channels.
void store_sums(const at::Tensor& image, const at::Tensor& sums) {
  const std::vector<int64_t> axes = aten::axes_of_sums(image, sums.size(0) == 1);
  sums.copy_((axes.empty() ? image : image.sum(axes)).view(sums.sizes()));
}

}  // namespace

namespace aten {

void plane_moments(const at::Tensor& x, const at::Tensor& moments) {
  const at::Tensor cells = x.unflatten(1, at::IntArrayRef{moments.size(1), -1});
  const std::vector<int64_t> axes = axes_of_sums(cells, moments.size(0) == 1);
  moments.copy_(moments_over(cells, axes).view(moments.sizes()));
}

void normalise(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& added,
               const at::Tensor& y) {
  at::Tensor values = ScaleAndShift(x, norm)(x);
  if (added.defined()) values += added;
  y.copy_(after_activation(norm.activation, values));
}

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                         const PlaneNorm& norm, const at::Tensor& sum_dy,
                         const at::Tensor& sum_dy_xhat) {
  const at::Tensor dy = before_activation(x, y, grad_y, norm).to(at::kDouble);
  const at::Tensor xhat = (x.to(at::kDouble) - beside(x, norm.mean)) * beside(x, norm.inverse_std);
  store_sums(dy, sum_dy);
  store_sums(dy * xhat, sum_dy_xhat);
}

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, const at::Tensor& mean_dxhat,
                        const at::Tensor& mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added) {
  const at::ScalarType type = computing_type(x);
  const at::Tensor dy = before_activation(x, y, grad_y, norm);
  at::Tensor dx = dy * ScaleAndShift(x, norm).scale;
  if (mean_dxhat.defined()) {
    const at::Tensor inverse_std = beside(x, norm.inverse_std);
    const at::Tensor slope = inverse_std * inverse_std * beside(x, mean_dxhat_xhat);
    const at::Tensor distance = x.to(type) - beside(x, norm.mean).to(type);
    dx.sub_(distance * slope.to(type) + (inverse_std * beside(x, mean_dxhat)).to(type));
  }
  if (grad_added.defined()) grad_added.copy_(dy);
  grad_x.copy_(dx);
}

}  // namespace aten

const NormKernels NormKernels::kAten{.plane_moments = aten::plane_moments,
                                     .normalise = aten::normalise,
                                     .plane_gradient_sums = aten::plane_gradient_sums,
                                     .normalise_gradient = aten::normalise_gradient};

}  // namespace tessera
