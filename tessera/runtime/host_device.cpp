#include <sys/mman.h>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/small_pages.h"

namespace tessera {
namespace {

constexpr int64_t kHugePages = 4 << 20;  // from this size on

/// What the host computes is done when it has been called, and its memory is counted by the
/// allocator (caching_allocator.h).
class HostDevice final : public Device {
 public:
  explicit HostDevice(ImageLayout layout) : layout_(layout) {}

  at::Device place() const override { return at::kCPU; }
  ImageLayout layout() const override { return layout_; }

  at::Tensor block(int64_t bytes) override {
    if (bytes == 0) return at::empty({0}, at::kByte);
    const auto size = static_cast<size_t>(bytes);
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw_error<OutOfMemory>(
          "[memory] the system has no {} left for the values of a step; use more workers or a "
          "smaller input",
          format_bytes(bytes));
    if (bytes >= kHugePages && !SmallPages::wanted()) madvise(memory, size, MADV_HUGEPAGE);
    return at::from_blob(
        memory, {bytes}, [size](void* block) { munmap(block, size); }, at::kByte);
  }

  at::Tensor on_host(at::IntArrayRef shape, at::ScalarType type) override {
    return at::empty(shape, type);
  }
  DeviceQueue* queue(Stream) override { return nullptr; }
  bool can_record() const override { return false; }
  std::unique_ptr<DeviceRecording> record(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<DeviceTimer> timer() override { return nullptr; }
  int64_t live_bytes() const override { return 0; }
  int64_t peak_bytes() const override { return 0; }
  void reset_peak() override {}

 private:
  const ImageLayout layout_;
};

}  // namespace

Device& host_device() {
  static HostDevice device(ImageLayout::kContiguous);
  return device;
}

std::unique_ptr<Device> open_host_device(ImageLayout layout) {
  return std::make_unique<HostDevice>(layout);
}

}  // namespace tessera
