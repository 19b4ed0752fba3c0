#pragma once
// From tensors to what kernels take that have a thread for each pixel (pixel_threads.h).

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

#include "tessera/kernels/cuda/pixel_threads.h"

namespace tessera::cuda {

/// An image of batch, channels and 1 to 3 spatial axes.
Volume volume_of(const at::Tensor& image);

/// Threads for all pixels of `image`, each with as many channels as both images can move at once.
/// `bytes` lie beside each other as the channels do; undefined: there are none. Nothing for types
/// or sizes that no kernel takes.
std::optional<PixelThreads> pixel_threads(const at::Tensor& image, const at::Tensor& other,
                                          const at::Tensor& bytes);

/// Calls launch(call, stream) with the current stream of the image's device.
template <class Call>
void launch_beside(const at::Tensor& image, cudaError_t (*launch)(const Call&, cudaStream_t),
                   const Call& call) {
  const c10::cuda::CUDAGuard here(image.device());
  C10_CUDA_CHECK(launch(call, c10::cuda::getCurrentCUDAStream()));
}

}  // namespace tessera::cuda
