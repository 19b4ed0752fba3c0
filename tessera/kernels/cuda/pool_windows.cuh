#pragma once
// The device's side of pool_launch.h: the ways from an output to its inputs and from an input to
// its outputs.

#include "tessera/kernels/cuda/pixel_place.cuh"
#include "tessera/kernels/cuda/pool_launch.h"

namespace tessera::cuda {

struct Span {
  int begin, end;
};

__device__ inline int divide_up(int value, int divisor) {
  return divisor == 1 ? value : (value + divisor - 1) / divisor;
}

/// The taps of an output that lie inside the image.
__device__ inline Span taps_inside(const WindowAxis& axis, int output) {
  const int first = axis.first + output * axis.stride;
  const int below = max(-first, 0), above = max(axis.inputs - first, 0);
  return {divide_up(below, axis.dilation), min(axis.kernel, divide_up(above, axis.dilation))};
}

/// The outputs whose windows hold an input, or pass over it between their taps.
__device__ inline Span outputs_around(const WindowAxis& axis, int input) {
  const int distance = input - axis.first, reach = (axis.kernel - 1) * axis.dilation;
  return {divide_up(max(distance - reach, 0), axis.stride),
          min(axis.outputs, distance / axis.stride + 1)};
}

/// Which tap of an output an input is; -1: none.
__device__ inline int tap_at(const WindowAxis& axis, int output, int input) {
  const int distance = input - axis.first - output * axis.stride;
  if (axis.dilation == 1) return distance;
  const int tap = distance / axis.dilation;
  return tap * axis.dilation == distance ? tap : -1;
}

/// Calls visit(offset from the first input, index of the tap) for the taps of an output that lie
/// inside the image, in scan order.
template <class Visit>
__device__ inline void for_taps(const WindowAxis (&axes)[3], const int (&output)[3],
                                const Volume& image, Visit&& visit) {
  Span taps[3];
  int first[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    taps[axis] = taps_inside(axes[axis], output[axis]);
    first[axis] = axes[axis].first + output[axis] * axes[axis].stride;
  }
  for (int d = taps[0].begin; d < taps[0].end; ++d) {
    const int64_t plane = (first[0] + d * axes[0].dilation) * image.axes[0];
    for (int h = taps[1].begin; h < taps[1].end; ++h) {
      const int64_t row = plane + (first[1] + h * axes[1].dilation) * image.axes[1];
      const int before = (d * axes[1].kernel + h) * axes[2].kernel;
      for (int w = taps[2].begin; w < taps[2].end; ++w)
        visit(row + (first[2] + w * axes[2].dilation) * image.axes[2], before + w);
    }
  }
}

/// Calls visit(output, index of the tap) for the outputs that read an input, in row-major order.
template <class Visit>
__device__ inline void for_outputs(const WindowAxis (&axes)[3], const int (&input)[3],
                                   Visit&& visit) {
  Span outputs[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) outputs[axis] = outputs_around(axes[axis], input[axis]);
  int output[3];
  for (output[0] = outputs[0].begin; output[0] < outputs[0].end; ++output[0]) {
    const int d = tap_at(axes[0], output[0], input[0]);
    if (d < 0) continue;
    for (output[1] = outputs[1].begin; output[1] < outputs[1].end; ++output[1]) {
      const int h = tap_at(axes[1], output[1], input[1]);
      if (h < 0) continue;
      for (output[2] = outputs[2].begin; output[2] < outputs[2].end; ++output[2]) {
        const int w = tap_at(axes[2], output[2], input[2]);
        if (w >= 0) visit(output, (d * axes[1].kernel + h) * axes[2].kernel + w);
      }
    }
  }
}

}  // namespace tessera::cuda
