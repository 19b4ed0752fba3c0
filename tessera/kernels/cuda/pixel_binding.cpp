#include "tessera/kernels/cuda/pixel_binding.h"

#include <algorithm>
#include <limits>

#include "tessera/geometry/divide.h"
#include "tessera/kernels/aten/tensors.h"
#include "tessera/kernels/cuda/image_binding.h"

namespace tessera::cuda {
namespace {

/// Of channels 16 bytes at a time, or one by one: enough for whole lines of memory, and few, so
/// that a block has many pixels and finds again what their windows share.
constexpr int64_t kWideThreads = 8, kNarrowThreads = 32;

bool has_neighbouring_channels(const at::Tensor& image) {
  return image.size(1) == 1 || image.stride(1) == 1;
}

bool lies_at(const at::Tensor& numbers, int64_t bytes) {
  return !numbers.defined() ||
         reinterpret_cast<uintptr_t>(numbers.data_ptr()) % static_cast<uintptr_t>(bytes) == 0;
}

/// Large enough for every axis that fits into memory, small enough for sums of some.
constexpr int64_t kLongestAxis = int64_t{1} << 29;

bool is_short(const at::Tensor& image) {
  return image.dim() >= 3 && image.dim() <= 5 &&
         std::ranges::all_of(image.sizes(), [](int64_t size) { return size <= kLongestAxis; });
}

}  // namespace

Volume volume_of(const at::Tensor& image) {
  const at::Tensor volume = aten::as_volume(image);
  return {volume.data_ptr(),
          volume.stride(0),
          volume.stride(1),
          {volume.stride(2), volume.stride(3), volume.stride(4)}};
}

std::optional<PixelThreads> pixel_threads(const at::Tensor& image, const at::Tensor& other,
                                          const at::Tensor& bytes) {
  const std::optional<NumberType> type = number_type(image);
  if (!type || other.scalar_type() != image.scalar_type() || !is_short(image) || !is_short(other))
    return std::nullopt;
  PixelThreads threads{.type = *type};
  const at::Tensor volume = aten::as_volume(image);
  threads.pixels = volume.numel() / volume.size(1);
  for (int axis = 0; axis < 3; ++axis)
    threads.sizes[axis] = static_cast<int>(volume.size(2 + axis));
  threads.channels = static_cast<int>(volume.size(1));
  const bool is_last = has_neighbouring_channels(image) && has_neighbouring_channels(other);
  if (is_last && lies_at(bytes, 16)) threads.width = access_width({image, other});
  const int64_t groups = threads.channels / threads.width;
  const int64_t most = !is_last ? 1 : threads.width > 1 ? kWideThreads : kNarrowThreads;
  threads.channel_tiles = static_cast<int>(ceil_div(groups, most));
  threads.channel_threads = static_cast<int>(ceil_div(groups, threads.channel_tiles));
  threads.pixel_threads = kThreads / threads.channel_threads;
  threads.pixel_tiles = ceil_div(threads.pixels, threads.pixel_threads);
  if (threads.blocks() > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return threads;
}

}  // namespace tessera::cuda
