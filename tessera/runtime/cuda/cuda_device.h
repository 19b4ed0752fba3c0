#pragma once
// GPUs of NVIDIA. Implemented by cuda_device.cpp, or where LibTorch has no CUDA by no_cuda.cpp.

#include <memory>
#include <string>
#include <vector>

#include "tessera/runtime/device.h"

namespace tessera {

/// For the calling thread. Throws InvalidInput with why_no_cuda(), or where there is none of the
/// wanted number.
std::unique_ptr<Device> open_cuda_device(const DeviceChoice& choice, int rank);
int num_cuda_devices();
/// Throws InvalidInput where there is none of this number.
DeviceInfo describe_cuda_device(int index);
/// What is missing, and the remedy; empty: nothing.
std::string why_no_cuda();

}  // namespace tessera
