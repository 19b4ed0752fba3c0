#include <algorithm>
#include <span>
#include <vector>

#include "tessera/kernels/cpu/max_registers.h"
#include "tessera/kernels/cpu/pool_loops.h"

namespace tessera {
namespace {

/// Those of most windows without a call for memory.
template <class T>
class TapList {
 public:
  void push_back(const MaxTap<T>& tap) {
    if (count_ < kFew)
      few_[count_] = tap;
    else
      many_.push_back(tap);
    if (++count_ == kFew) many_.assign(few_, few_ + kFew);
  }
  std::span<const MaxTap<T>> all() const { return {count_ < kFew ? few_ : many_.data(), count_}; }

 private:
  static constexpr size_t kFew = 28;

  MaxTap<T> few_[kFew];
  std::vector<MaxTap<T>> many_;
  size_t count_ = 0;
};

template <class T, class Code>
void max_pool_forward(const PoolPiece& piece, const ImageView<const T>& x, const ImageView<T>& y,
                      Code* codes) {
  const PoolAxis& width = piece[2];
  for_row_parts(piece, y.num_planes(), [&](const RowPart& part) {
    const T* const plane = x.plane(part.plane);
    T* const out = y.plane(part.plane) + part.offset(y.strides);
    const int64_t count = part.columns.size();
    TapList<T> taps;
    for_taps(part, [&](int64_t tap, int64_t d, int64_t h, int64_t w, const Range& outputs) {
      const Range inside = outputs.shifted(-part.columns.begin);
      const T* first = plane + d * x.strides[2] + h * x.strides[3] + w;
      taps.push_back({static_cast<ChoiceNumber<T>>(tap), first - inside.begin * width.stride,
                      inside.begin, inside.end});
    });
    for (int64_t j = 0; j < count; j += kLanes<T>)
      choose_maxima<T>(taps.all(), width.stride, j, std::min<int64_t>(kLanes<T>, count - j), out,
                       codes + part.index());
  });
}

/// Distance in memory from a window's first tap to each of its taps.
std::vector<int64_t> tap_offsets(const PoolPiece& piece, const std::array<int64_t, 5>& strides) {
  const auto& [depth, height, width] = piece;
  std::vector<int64_t> offsets;
  for (int64_t kd = 0; kd < depth.kernel; ++kd)
    for (int64_t kh = 0; kh < height.kernel; ++kh)
      for (int64_t kw = 0; kw < width.kernel; ++kw)
        offsets.push_back(kd * depth.dilation * strides[2] + kh * height.dilation * strides[3] +
                          kw * width.dilation);
  return offsets;
}

/// Whether every input belongs to one window, and windows are two columns wide.
template <class T>
bool has_pairs(const PoolPiece& piece, const ImageView<T>& grad_x) {
  for (int axis = 0; axis < 3; ++axis) {
    const PoolAxis& along = piece[axis];
    if (along.kernel != along.stride || along.dilation != 1 || along.padding != 0 ||
        grad_x.sizes[2 + axis] != along.out.size() * along.kernel)
      return false;
  }
  return piece[2].kernel == 2;
}

/// Writes every input once.
template <class T, class Code>
void max_pool_backward_of_pairs(const PoolPiece& piece, const ImageView<const T>& grad_y,
                                const Code* codes, const ImageView<T>& grad_x) {
  const auto& [depth, height, width] = piece;
  for_row_parts(piece, grad_y.num_planes(), [&](const RowPart& part) {
    const T* dy = grad_y.plane(part.plane) + part.offset(grad_y.strides);
    T* first = grad_x.plane(part.plane) + 2 * (part.columns.begin - width.out.begin);
    ChoiceNumber<T> tap = 0;
    for (int64_t kd = 0; kd < depth.kernel; ++kd)
      for (int64_t kh = 0; kh < height.kernel; ++kh, tap += 2)
        spread_to_pairs(dy, codes + part.index(), tap, part.columns.size(),
                        first + (depth.tap(part.d, kd) - depth.in.begin) * grad_x.strides[2] +
                            (height.tap(part.h, kh) - height.in.begin) * grad_x.strides[3]);
  });
}

template <class T, class Code>
void max_pool_backward(const PoolPiece& piece, const ImageView<const T>& grad_y, const Code* codes,
                       const ImageView<T>& grad_x) {
  const auto& [depth, height, width] = piece;
  if (has_pairs(piece, grad_x)) return max_pool_backward_of_pairs(piece, grad_y, codes, grad_x);
  const std::vector<int64_t> offsets = tap_offsets(piece, grad_x.strides);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_row_parts_of_plane(piece, plane, [&](const RowPart& part) {
      const T* dy = grad_y.plane(plane) + part.offset(grad_y.strides);
      const Code* code = codes + part.index();
      T* dx = grad_x.plane(plane);
      // The first tap of the first window, which may lie in the padding.
      int64_t window = (depth.tap(part.d, 0) - depth.in.begin) * grad_x.strides[2] +
                       (height.tap(part.h, 0) - height.in.begin) * grad_x.strides[3] +
                       width.tap(part.columns.begin, 0) - width.in.begin;
      for (int64_t i = 0; i < part.columns.size(); ++i, window += width.stride)
        dx[window + offsets[code[i]]] += dy[i];
    });
  });
}

}  // namespace

namespace cpu {

void pool_maxima(const PoolPiece& piece, const at::Tensor& x, const at::Tensor& y,
                 const at::Tensor& choices) {
  const at::Tensor from = read_rows(x);
  write_rows(y, [&](const at::Tensor& to) {
    on_choices(from, choices, [&]<class T>(auto* codes) {
      max_pool_forward(piece, ImageView<const T>(from), ImageView<T>(to), codes);
    });
  });
}

void pool_maxima_gradient(const PoolPiece& piece, const at::Tensor& grad_y,
                          const at::Tensor& choices, const at::Tensor& grad_x) {
  const at::Tensor from = read_rows(grad_y);
  write_rows(grad_x, [&](const at::Tensor& to) {
    on_choices(from, choices, [&]<class T>(const auto* codes) {
      max_pool_backward(piece, ImageView<const T>(from), codes, ImageView<T>(to));
    });
  });
}

}  // namespace cpu

const MaxPoolKernels MaxPoolKernels::kCpu{.pool_maxima = cpu::pool_maxima,
                                          .pool_maxima_gradient = cpu::pool_maxima_gradient};

}  // namespace tessera
