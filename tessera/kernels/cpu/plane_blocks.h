#pragma once
// Cuts the planes of an image (one per batch entry and channel) into blocks that fit the
// first-level cache, for kernels that walk every element. The cut depends on shape and layout
// alone, so sums taken block by block have the same bits for any number of threads.
//
// Example:
//   const std::vector<at::Tensor> images = join_rows({read_rows(x), read_rows(y)});
//   const PlaneBlocks blocks(images[0]);
//   blocks.in_parallel([&](int64_t block) { ... blocks.for_rows(block, ...) ... });

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera {

/// Joins rows, then slices, into longer rows where every image allows it without a copy. Images are
/// N x C x D x H x W with contiguous rows, and stay so.
inline std::vector<at::Tensor> join_rows(std::vector<at::Tensor> images) {
  for (int pass = 0; pass < 2; ++pass) {
    for (const at::Tensor& image : images)
      if (image.size(-2) > 1 && image.stride(-2) != image.size(-1)) return images;
    for (at::Tensor& image : images) image = image.flatten(-2, -1).unsqueeze(2);
  }
  return images;
}

/// Cuts every plane into blocks of some rows, or of a part of one long row.
class PlaneBlocks {
 public:
  static constexpr int64_t kBlockElements = 2048;  // 16 KiB of float64: two passes stay in L1
  static constexpr int64_t kParallelElements = 32768;

  explicit PlaneBlocks(const at::Tensor& image)
      : channels_(image.size(1)), height_(image.size(3)), width_(image.size(4)) {
    num_rows_ = image.size(2) * height_;
    columns_ = std::min(width_, kBlockElements);
    rows_ = std::clamp<int64_t>(kBlockElements / width_, 1, num_rows_);
    across_ = (width_ + columns_ - 1) / columns_;
    per_plane_ = (num_rows_ + rows_ - 1) / rows_ * across_;
    total_ = image.size(0) * channels_ * per_plane_;
  }

  int64_t total() const { return total_; }
  int64_t batch(int64_t block) const { return block / per_plane_ / channels_; }
  int64_t channel(int64_t block) const { return block / per_plane_ % channels_; }

  /// Calls visit(d, h, first column, number of columns) for each row of the block.
  template <class Visit>
  void for_rows(int64_t block, Visit&& visit) const {
    const int64_t in_plane = block % per_plane_;
    const int64_t column = in_plane % across_ * columns_;
    const int64_t columns = std::min(columns_, width_ - column);
    const int64_t begin = in_plane / across_ * rows_;
    const int64_t end = std::min(begin + rows_, num_rows_);
    for (int64_t row = begin; row < end; ++row)
      visit(row / height_, row % height_, column, columns);
  }

  template <class Visit>
  void in_parallel(Visit&& visit) const {
    const int64_t grain = std::max<int64_t>(1, kParallelElements / (rows_ * columns_));
    at::parallel_for(0, total_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) visit(block);
    });
  }

 private:
  int64_t channels_, height_, width_;
  int64_t num_rows_, rows_, columns_, across_, per_plane_, total_;
};

}  // namespace tessera
