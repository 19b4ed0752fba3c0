#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <array>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/pool.h"

namespace tessera {
namespace {

/// Any strides, also along rows.
template <class T>
T& element(const ImageView<T>& view, T* plane, int64_t d, int64_t h, int64_t w) {
  return plane[d * view.strides[2] + h * view.strides[3] + w * view.strides[4]];
}

/// Where a window has its maximum, along D, H, W.
using Place = std::array<int64_t, 3>;

/// The first of equal values wins, and a NaN always does: max pooling's rules.
template <class T>
Place place_of_maximum(const PoolPiece& piece, const ImageView<const T>& x, const T* plane,
                       int64_t d, int64_t h, int64_t w) {
  const auto& [depth, height, width] = piece;
  const Range taps_d = depth.taps_inside(d), taps_h = height.taps_inside(h),
              taps_w = width.taps_inside(w);
  Place place{-1, -1, -1};
  T best{};
  for (int64_t kd = taps_d.begin; kd < taps_d.end; ++kd)
    for (int64_t kh = taps_h.begin; kh < taps_h.end; ++kh)
      for (int64_t kw = taps_w.begin; kw < taps_w.end; ++kw) {
        const Place at{depth.tap(d, kd), height.tap(h, kh), width.tap(w, kw)};
        const T value = element(x, plane, at[0] - depth.in.begin, at[1] - height.in.begin,
                                at[2] - width.in.begin);
        if (place[0] >= 0 && !(value > best) && value == value) continue;
        best = value;
        place = at;
      }
  return place;
}

/// Calls visit(d, h, w, index in the piece) for the pooled pixels of a plane, in scan order.
template <class Visit>
void for_pooled_pixels(const PoolPiece& piece, int64_t plane, Visit&& visit) {
  const auto& [depth, height, width] = piece;
  int64_t index = plane * depth.out.size() * height.out.size() * width.out.size();
  for (int64_t d = depth.out.begin; d < depth.out.end; ++d)
    for (int64_t h = height.out.begin; h < height.out.end; ++h)
      for (int64_t w = width.out.begin; w < width.out.end; ++w) visit(d, h, w, index++);
}

template <class T>
void place_values(const PoolPiece& piece, const std::array<Range, 3>& box,
                  const ImageView<const T>& values, const ImageView<const T>& x,
                  const ImageView<T>& target, int32_t* places) {
  at::parallel_for(0, values.num_planes(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      for_pooled_pixels(piece, plane, [&](int64_t d, int64_t h, int64_t w, int64_t index) {
        Place at = place_of_maximum(piece, x, x.plane(plane), d, h, w);
        bool inside = true;
        for (int axis = 0; axis < 3; ++axis) {
          inside = inside && box[axis].begin <= at[axis] && at[axis] < box[axis].end;
          at[axis] -= box[axis].begin;
        }
        places[index] =
            inside ? static_cast<int32_t>((at[0] * box[1].size() + at[1]) * box[2].size() + at[2])
                   : -1;
        if (!inside) return;
        element(target, target.plane(plane), at[0], at[1], at[2]) =
            element(values, values.plane(plane), d - piece[0].out.begin, h - piece[1].out.begin,
                    w - piece[2].out.begin);
      });
  });
}

template <class T>
void collect_gradients(const PoolPiece& piece, const ImageView<const T>& dy, const ImageView<T>& dx,
                       const int32_t* places) {
  at::parallel_for(0, dx.num_planes(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      for_pooled_pixels(piece, plane, [&](int64_t d, int64_t h, int64_t w, int64_t index) {
        const int64_t place = places[index], row = place / dy.sizes[4];
        element(dx, dx.plane(plane), d - piece[0].out.begin, h - piece[1].out.begin,
                w - piece[2].out.begin) = place < 0
                                              ? T(0)
                                              : element(dy, dy.plane(plane), row / dy.sizes[3],
                                                        row % dy.sizes[3], place % dy.sizes[4]);
      });
  });
}

}  // namespace

namespace cpu {

void unpool_maxima(const PoolPiece& piece, const std::array<Range, 3>& box,
                   const at::Tensor& values, const at::Tensor& x, const at::Tensor& y,
                   const at::Tensor& places) {
  y.zero_();
  if (values.numel() == 0) return;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "unpool_maxima", [&] {
    place_values(piece, box, ImageView<const scalar_t>(with_five_axes(values)),
                 ImageView<const scalar_t>(with_five_axes(x)),
                 ImageView<scalar_t>(with_five_axes(y)), places.data_ptr<int32_t>());
  });
}

void unpool_maxima_gradient(const PoolPiece& piece, const at::Tensor& grad_y,
                            const at::Tensor& places, const at::Tensor& grad_values) {
  AT_DISPATCH_FLOATING_TYPES(grad_values.scalar_type(), "unpool_maxima", [&] {
    collect_gradients(piece, ImageView<const scalar_t>(with_five_axes(grad_y)),
                      ImageView<scalar_t>(with_five_axes(grad_values)), places.data_ptr<int32_t>());
  });
}

}  // namespace cpu

const MaxUnpoolKernels MaxUnpoolKernels::kCpu{
    .unpool_maxima = cpu::unpool_maxima, .unpool_maxima_gradient = cpu::unpool_maxima_gradient};

}  // namespace tessera
