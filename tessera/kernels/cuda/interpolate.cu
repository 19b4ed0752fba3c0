// Interpolation and its adjoint: either way a result is a sum of products along three axes, of what
// it reads. Nothing with the weight 0 is on a list.

#include "tessera/kernels/cuda/interpolate_launch.h"

#include "tessera/kernels/cuda/pixel_place.cuh"

namespace tessera::cuda {
namespace {

template <class Real>
struct ReadList {
  const AxisRead<Real>* reads;
  int begin, end;

  __device__ ReadList(const AxisReads& axis, int result)
      : reads(static_cast<const AxisRead<Real>*>(axis.reads)),
        begin(axis.begins[result]),
        end(axis.begins[result + 1]) {}
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) interpolate_kernel(InterpolateCall call) {
  using Real = Computing<T>;
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  const T* from = place.base<const T>(call.from);
  const ReadList<Real> planes(call.axes[0], place.at[0]), rows(call.axes[1], place.at[1]),
      columns(call.axes[2], place.at[2]);
  Real sums[kWidth] = {};
  for (int d = planes.begin; d < planes.end; ++d) {
    const AxisRead<Real> plane = planes.reads[d];
    for (int h = rows.begin; h < rows.end; ++h) {
      const AxisRead<Real> row = rows.reads[h];
      const Real weight = plane.weight * row.weight;
      const T* of_row = from + plane.index * call.from.axes[0] + row.index * call.from.axes[1];
#pragma unroll 2
      for (int w = columns.begin; w < columns.end; ++w) {
        const AxisRead<Real> column = columns.reads[w];
        Packed<T, kWidth> loaded;
        loaded.load(of_row + column.index * call.from.axes[2]);
        Real values[kWidth];
        loaded.unpack(values);
#pragma unroll
        for (int i = 0; i < kWidth; ++i)
          sums[i] = multiply_add(weight * column.weight, values[i], sums[i]);
      }
    }
  }
  store<T, kWidth>(place.own<T>(call.to), sums);
}

}  // namespace

cudaError_t launch_interpolation(const InterpolateCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    return launch_kernel(interpolate_kernel<T, decltype(width)::value>, call.threads.blocks(),
                         call.threads.threads(), stream, call);
  });
}

}  // namespace tessera::cuda
