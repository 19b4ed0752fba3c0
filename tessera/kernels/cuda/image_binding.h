#pragma once
// From tensors to what kernels take: images of one shape in channels-last order, walked together.

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

struct BoundImages {
  NumberType type = NumberType::kFloat32;
  std::vector<Image> images;  // null for tensors that are undefined
  Pixels pixels;
  int64_t rows = 1;
  int channels = 1;
  int width = 1;  // neighbouring channels of one access

  ImageTiles tiles(int most_pixels) const {
    return share_out(pixels, rows, channels, width, most_pixels);
  }
};

/// Views of a shape N x C x up to 3 axes. With one row, samples are an axis of the pixels; else
/// each is a row. Nothing where a kernel cannot take them: of another type or with other strides.
std::optional<BoundImages> bind_images(const std::vector<at::Tensor>& images, int64_t rows);

/// How many neighbouring channels, which have stride 1, one access can read or write in each image.
/// All but the first may be undefined.
int access_width(const std::vector<at::Tensor>& images);

std::optional<NumberType> number_type(const at::Tensor& tensor);

}  // namespace tessera::cuda
