#pragma once
// What norm.cpp hands to the kernels of norm.cu: pointers, sizes and strides.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

/// Float64 numbers of rows x cells; null: there are none.
struct CellTable {
  double* data = nullptr;
  int64_t row_stride = 0, cell_stride = 0;
};

/// Numbers of the channels; null: all are `otherwise`.
struct ChannelTable {
  const void* data = nullptr;
  NumberType type = NumberType::kFloat32;
  int64_t stride = 0;
  double otherwise = 0;
};

struct PlaneNumbers {
  CellTable mean, inverse_std;
  int channels_of_cell = 1;
  ChannelTable weight, bias;
  double low = 0, high = 0;  // values are raised to `low`, lowered to `high`; NaN: no limit
};

/// What the first of two passes leaves of each channel of each tile: rows x channels x tiles.
struct PairOfSums {
  double first, second;
};

struct MomentsCall {
  NumberType type;
  ImageTiles tiles;
  Image x;
  PairOfSums* parts = nullptr;  // mean and squared distances
  double* moments = nullptr;
  int64_t cells = 1, row_stride = 0, cell_stride = 0, number_stride = 1;
};

struct NormaliseCall {
  NumberType type;
  ImageTiles tiles;
  PlaneNumbers norm;
  Image x, added, y;
};

struct GradientSumsCall {
  NumberType type;
  ImageTiles tiles;
  PlaneNumbers norm;
  Image x, y, grad_y;             // y.data may be null
  PairOfSums* parts = nullptr;    // of dy, and of dy * (x - mean)
  CellTable sum_dy, sum_dy_xhat;  // of the channels
};

struct NormGradientCall {
  NumberType type;
  ImageTiles tiles;
  PlaneNumbers norm;
  CellTable mean_dxhat, mean_dxhat_xhat;
  Image x, y, grad_y, grad_x, grad_added;  // y's and grad_added's data may be null
};

cudaError_t launch(const MomentsCall& call, cudaStream_t stream);
cudaError_t launch(const NormaliseCall& call, cudaStream_t stream);
cudaError_t launch(const GradientSumsCall& call, cudaStream_t stream);
cudaError_t launch(const NormGradientCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
