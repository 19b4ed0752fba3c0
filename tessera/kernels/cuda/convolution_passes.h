#pragma once
// The passes beside cuDNN's products. Weights lie in [coarse channels][fine channels of a group]
// [taps] and in the run's wide type, as parameters do; products want the channels last, and numbers
// of the images' type. Images have their channels side by side. All that a launch needs is in plain
// numbers, so that this file sees neither torch nor a stream of its own.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::cuda {

enum class ImageNumber { kFloat32, kBFloat16 };

struct WeightShape {
  int64_t groups, coarse, fine, taps;  // channels of one group
};

/// to[k][t][c] = from[k][c][t]: the weight of a convolution.
void weight_channels_last(const WeightShape& shape, const float* from, void* to, ImageNumber type,
                          cudaStream_t stream);

/// to[c][taps - 1 - t][k] = from[k][c][t] in each group: the weight with which a convolution gives
/// what the transposed one gives, where windows lie side by side (stride 1).
void weight_mirrored(const WeightShape& shape, const float* from, void* to, ImageNumber type,
                     cudaStream_t stream);

/// to[k][c][t] += from[k][t][c].
void add_weight_gradient(const WeightShape& shape, const void* from, ImageNumber type, float* to,
                         cudaStream_t stream);

/// Steps in memory, in numbers, between neighbours along an axis; channels lie side by side.
struct ImageSteps {
  int64_t sample, slice, row, pixel;
};

struct ImageExtent {
  int64_t samples, slices, rows, pixels, channels;
};

/// to = from + bias; no bias: a copy. Both may be the same image.
void copy_with_bias(const ImageExtent& extent, const void* from, const ImageSteps& from_steps,
                    void* to, const ImageSteps& to_steps, const float* bias, ImageNumber type,
                    cudaStream_t stream);

}  // namespace tessera::cuda
