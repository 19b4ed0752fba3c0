#pragma once
// From pieces to the windows that kernels take.

#include "tessera/kernels/cuda/pool_launch.h"
#include "tessera/kernels/pool.h"

namespace tessera::cuda {

WindowAxis window_axis(const PoolAxis& axis);

/// Whether each input of the piece lies in one window and no more.
bool windows_tile(const PoolPiece& piece);

}  // namespace tessera::cuda
