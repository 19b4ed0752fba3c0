#include "tessera/runtime/device.h"

#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/runtime/cuda/cuda_device.h"

namespace tessera {

std::unique_ptr<Device> open_device(const DeviceChoice& choice, int rank) {
  if (choice.type == at::kCPU)
    return open_host_device(choice.layout.value_or(ImageLayout::kContiguous));
  if (choice.type == at::kCUDA) return open_cuda_device(choice, rank);
  throw_error<InvalidInput>("[device] {} is not a device that Tessera runs on; use cpu or cuda",
                            c10::DeviceTypeName(choice.type, /*lower_case=*/true));
}

std::vector<DeviceInfo> list_devices() {
  DeviceInfo host{.name = "cpu", .model = "CPU"};
  const int64_t page = sysconf(_SC_PAGESIZE);
  host.bytes = page * sysconf(_SC_PHYS_PAGES);
  host.free_bytes = page * sysconf(_SC_AVPHYS_PAGES);
  std::vector<DeviceInfo> devices{host};
  for (DeviceInfo& gpu : list_cuda_devices()) devices.push_back(std::move(gpu));
  return devices;
}

std::string why_no_gpu() { return why_no_cuda(); }

}  // namespace tessera
