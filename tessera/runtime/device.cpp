#include "tessera/runtime/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/cpu.h"
#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/cuda_device.h"

namespace tessera {

namespace {

thread_local at::Device opened_last = at::kCPU;

std::unique_ptr<Device> open_kind(const DeviceChoice& choice, int rank) {
  if (choice.type == at::kCPU)
    return open_host_device(choice.layout.value_or(ImageLayout::kContiguous));
  if (choice.type == at::kCUDA) return open_cuda_device(choice, rank);
  throw_error<InvalidInput>("[device] {} is not a device that Tessera runs on; use cpu or cuda",
                            c10::DeviceTypeName(choice.type, /*lower_case=*/true));
}

}  // namespace

std::unique_ptr<Device> open_device(const DeviceChoice& choice, int rank) {
  std::unique_ptr<Device> device = open_kind(choice, rank);
  opened_last = device->place();
  return device;
}

at::Device place_of_this_thread() { return opened_last; }

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices{device_info(at::kCPU)};
  for (int index = 0; index < num_gpus(); ++index)
    devices.push_back(device_info({at::kCUDA, static_cast<c10::DeviceIndex>(index)}));
  return devices;
}

DeviceInfo device_info(const at::Device& place) {
  if (place.is_cuda()) return describe_cuda_device(place.index());
  DeviceInfo host{.name = "cpu", .model = cpu_model()};
  host.bytes = sysconf(_SC_PAGESIZE) * sysconf(_SC_PHYS_PAGES);
  host.free_bytes = free_memory();
  host.details = counted(usable_cores(), "core");
  return host;
}

std::string name_of(const at::Device& place) {
  if (place.is_cpu()) return "cpu";
  const DeviceInfo info = device_info(place);
  return fmt::format("{} ({})", info.name, info.model);
}

int num_gpus() { return num_cuda_devices(); }

std::string why_no_gpu() { return why_no_cuda(); }

}  // namespace tessera
