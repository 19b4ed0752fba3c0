#include "tessera/base/error.h"
#include "tessera/runtime/cuda/cuda_device.h"

namespace tessera {

std::unique_ptr<Device> open_cuda_device(const DeviceChoice&, int) {
  throw_error<InvalidInput>("[device] cuda: {}", why_no_cuda());
}

int num_cuda_devices() { return 0; }

DeviceInfo describe_cuda_device(int) {
  throw_error<InvalidInput>("[device] cuda: {}", why_no_cuda());
}

std::string why_no_cuda() {
  return "this program was built without CUDA; build it against a LibTorch with CUDA, where nvcc "
         "is on the path (scripts/build_with_python_torch.sh), or use cpu";
}

}  // namespace tessera
