#include "tessera/kernels/dense_tiles.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/kernels/cpu/rows.h"

namespace tessera {
namespace {

constexpr int64_t kTileElements = 1 << 14;  // ATen starts threads of its own from 2^15 on
constexpr int64_t kVectors = 64;  // a multiple of the elements that any of ATen's loops takes

int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

/// The elements of a view in row-major order. Neighbouring axes are joined where memory allows it,
/// so that rows are as long as they can be.
class Elements {
 public:
  explicit Elements(const at::Tensor& view) : view_(view) {
    for (int64_t axis = 0; axis < view.dim(); ++axis) append({view.size(axis), view.stride(axis)});
    if (view.is_contiguous()) flat_ = view.view({-1});
  }

  /// Whether these elements, in memory, are a tile.
  bool has_tile(int64_t count) const { return flat_.defined() && count % kVectors == 0; }
  at::Tensor tile(int64_t begin, int64_t count) const { return flat_.narrow(0, begin, count); }

  void read(int64_t begin, int64_t count, const at::Tensor& buffer) const {
    AT_DISPATCH_FLOATING_TYPES(view_.scalar_type(), "read_tile", [&] {
      scalar_t* tile = buffer.data_ptr<scalar_t>();
      for_runs<scalar_t>(begin, count, [&](const scalar_t* run, int64_t stride, int64_t length) {
        if (stride == 1)
          std::copy_n(run, length, tile);
        else
          for (int64_t i = 0; i < length; ++i) tile[i] = run[i * stride];
        tile += length;
      });
    });
  }

  void write(int64_t begin, int64_t count, const at::Tensor& buffer) const {
    AT_DISPATCH_FLOATING_TYPES(view_.scalar_type(), "write_tile", [&] {
      const scalar_t* tile = buffer.data_ptr<scalar_t>();
      for_runs<scalar_t>(begin, count, [&](scalar_t* run, int64_t stride, int64_t length) {
        if (stride == 1)
          std::copy_n(tile, length, run);
        else
          for (int64_t i = 0; i < length; ++i) run[i * stride] = tile[i];
        tile += length;
      });
    });
  }

 private:
  struct ViewAxis {
    int64_t size = 1;
    int64_t stride = 1;
  };

  void append(const ViewAxis& axis) {
    if (axis.size == 1) return;
    ViewAxis& last = axes_[num_axes_ - 1];
    if (last.size == 1)
      last = axis;
    else if (last.stride == axis.size * axis.stride)
      last = {last.size * axis.size, axis.stride};
    else
      axes_[num_axes_++] = axis;
  }

  /// Calls visit(first element, stride, length) for the parts of rows that the elements lie in.
  template <class T, class Visit>
  void for_runs(int64_t begin, int64_t count, const Visit& visit) const {
    const ViewAxis row = axes_[num_axes_ - 1];
    RowIndex index{};
    int64_t column = begin % row.size;
    T* start = view_.data_ptr<T>() + start_of_row(begin / row.size, index);
    while (count > 0) {
      const int64_t length = std::min(row.size - column, count);
      visit(start + column * row.stride, row.stride, length);
      count -= length;
      column = 0;
      for (int axis = num_axes_ - 2; axis >= 0; --axis) {
        start += axes_[axis].stride;
        if (++index[axis] < axes_[axis].size) break;
        start -= axes_[axis].size * axes_[axis].stride;
        index[axis] = 0;
      }
    }
  }

  int64_t start_of_row(int64_t row, RowIndex& index) const {
    int64_t offset = 0;
    for (int axis = num_axes_ - 2; axis >= 0; --axis) {
      index[axis] = row % axes_[axis].size;
      row /= axes_[axis].size;
      offset += index[axis] * axes_[axis].stride;
    }
    return offset;
  }

  at::Tensor view_;
  at::Tensor flat_;
  std::array<ViewAxis, Box::kMaxAxes> axes_{};
  int num_axes_ = 1;
};

/// What one thread needs: the elements, and buffers for tiles that do not lie in memory.
class TileRun {
 public:
  TileRun(const std::vector<at::Tensor>& sources, const at::Tensor& target)
      : total_(target.numel()),
        sources_(sources.begin(), sources.end()),
        target_(target),
        options_(target.options()),
        tiles_(sources.size()),
        buffers_(sources.size() + 1) {}

  void evaluate(int64_t begin, const TileKernel& kernel) {
    const int64_t count = std::min(kTileElements, total_ - begin);
    for (size_t i = 0; i < sources_.size(); ++i) {
      const bool in_memory = sources_[i].has_tile(count);
      tiles_[i] = in_memory ? sources_[i].tile(begin, count) : buffer(i, count);
      if (!in_memory) sources_[i].read(begin, count, tiles_[i]);
    }
    const bool in_memory = target_.has_tile(count);
    at::Tensor result = in_memory ? target_.tile(begin, count) : buffer(sources_.size(), count);
    kernel(tiles_, result);
    if (!in_memory) target_.write(begin, count, result);
  }

 private:
  /// Holds ones where no element is copied to, because every function takes them.
  at::Tensor buffer(size_t index, int64_t count) {
    at::Tensor& whole = buffers_[index];
    if (!whole.defined())
      whole = at::ones({std::min(kTileElements, round_up(total_, kVectors))}, options_);
    return whole.narrow(0, 0, round_up(count, kVectors));
  }

  int64_t total_;
  std::vector<Elements> sources_;
  Elements target_;
  at::TensorOptions options_;
  Tiles tiles_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace

namespace cpu {

void in_dense_tiles(const std::vector<at::Tensor>& sources, const at::Tensor& target,
                    const TileKernel& kernel) {
  const int64_t num_tiles = round_up(target.numel(), kTileElements) / kTileElements;
  const bool inference = c10::InferenceMode::is_enabled();
  at::parallel_for(0, num_tiles, 1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode mode(inference);  // both are settings of each thread
    const c10::NoGradGuard no_grad;
    TileRun run(sources, target);
    for (int64_t tile = begin; tile < end; ++tile) run.evaluate(tile * kTileElements, kernel);
  });
}

}  // namespace cpu

const DenseTileKernels DenseTileKernels::kCpu{.in_dense_tiles = cpu::in_dense_tiles};

}  // namespace tessera
