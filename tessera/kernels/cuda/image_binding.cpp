#include "tessera/kernels/cuda/image_binding.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tessera::cuda {
namespace {

constexpr int64_t kBytesOfAccess = 16;

bool can_take(const at::Tensor& first, const at::Tensor& image) {
  return image.dim() >= 2 && image.dim() <= 1 + kPixelAxes &&
         image.scalar_type() == first.scalar_type() && image.sizes().equals(first.sizes()) &&
         (image.size(1) == 1 || image.stride(1) == 1) && image.device() == first.device();
}

/// The axes of the pixels, with the strides of all images along them.
struct Axis {
  int64_t size;
  std::vector<int64_t> strides;

  /// Both as one, where that holds in all images.
  bool takes(const Axis& inner) const {
    for (size_t i = 0; i < strides.size(); ++i)
      if (strides[i] != inner.size * inner.strides[i]) return false;
    return true;
  }
};

std::vector<Axis> joined_axes(const std::vector<at::Tensor>& images, bool with_samples) {
  std::vector<Axis> axes;
  const at::Tensor& first = images.front();
  for (int64_t axis = with_samples ? 0 : 2; axis < first.dim(); ++axis) {
    if (axis == 1 || first.size(axis) == 1) continue;
    Axis next{first.size(axis), {}};
    for (const at::Tensor& image : images)
      next.strides.push_back(image.defined() ? image.stride(axis) : 0);
    for (size_t i = 0; i < images.size();
         ++i)  // an image that is not there joins as the first does
      if (!images[i].defined()) next.strides[i] = next.strides[0];
    if (!axes.empty() && axes.back().takes(next)) {
      next.size *= axes.back().size;
      axes.pop_back();
    }
    axes.push_back(std::move(next));
  }
  return axes;
}

bool lies_at_accesses(const at::Tensor& image, int64_t width) {
  const int64_t bytes = width * static_cast<int64_t>(image.element_size());
  if (reinterpret_cast<uintptr_t>(image.data_ptr()) % static_cast<uintptr_t>(bytes) != 0)
    return false;
  for (int64_t axis = 0; axis < image.dim(); ++axis)
    if (axis != 1 && image.size(axis) > 1 && image.stride(axis) % width != 0) return false;
  return image.size(1) % width == 0;
}

void place_axes(const std::vector<Axis>& axes, BoundImages& bound) {
  bound.pixels.num_axes = axes.size() < 2 ? 1 : kPixelAxes;
  const size_t before = kPixelAxes - axes.size();
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    bound.pixels.sizes[before + axis] = axes[axis].size;
    bound.pixels.count *= axes[axis].size;
    for (size_t i = 0; i < bound.images.size(); ++i)
      bound.images[i].strides[before + axis] = axes[axis].strides[i];
  }
}

}  // namespace

std::optional<NumberType> number_type(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kDouble) return NumberType::kFloat64;
  if (tensor.scalar_type() == at::kFloat) return NumberType::kFloat32;
  if (tensor.scalar_type() == at::kBFloat16) return NumberType::kBFloat16;
  return std::nullopt;
}

int access_width(const std::vector<at::Tensor>& images) {
  const int64_t width = kBytesOfAccess / static_cast<int64_t>(images.front().element_size());
  const bool is_wide = std::ranges::all_of(images, [&](const at::Tensor& image) {
    return !image.defined() || lies_at_accesses(image, width);
  });
  return is_wide ? static_cast<int>(width) : 1;
}

std::optional<BoundImages> bind_images(const std::vector<at::Tensor>& images, int64_t rows) {
  const at::Tensor& first = images.front();
  const std::optional<NumberType> type = number_type(first);
  if (!type || first.numel() == 0 || first.size(1) > std::numeric_limits<int>::max())
    return std::nullopt;
  BoundImages bound{.type = *type, .images = {}, .pixels = {}};
  for (const at::Tensor& image : images) {
    if (image.defined() && !can_take(first, image)) return std::nullopt;
    bound.images.push_back({image.defined() ? image.data_ptr() : nullptr,
                            image.defined() && rows > 1 ? image.stride(0) : 0});
  }
  const std::vector<Axis> axes = joined_axes(images, rows == 1);
  if (axes.size() > 1)
    for (const Axis& axis : axes)
      if (axis.size > std::numeric_limits<int>::max()) return std::nullopt;
  place_axes(axes, bound);
  bound.rows = rows;
  bound.channels = static_cast<int>(first.size(1));
  bound.width = access_width(images);
  return bound;
}

}  // namespace tessera::cuda
