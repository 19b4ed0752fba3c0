#pragma once
// Where a rank computes: the memory of its tensors and the queues that its kernels run on. The CPU
// is one; a GPU is another (cuda/), whose kernels are those of the tables for it
// (kernels/kernel.h).
//
// The thread that opens a device works on it, in its first queue, until the device is gone; a
// thread has one device at a time besides the host.
//
// Example:
//   const std::unique_ptr<Device> device = open_device({.type = at::kCUDA}, transport.rank());
//   ParameterStore parameters(graph, program.parameters, seed, at::kFloat, *device);

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/device_queue.h"
#include "tessera/lower/program.h"

namespace tessera {

/// In which order the numbers of an image lie. Every dense image of a run has the same.
enum class ImageLayout { kContiguous, kChannelsLast };

struct DeviceChoice {
  at::DeviceType type = at::kCPU;
  std::optional<int> index = {};           // none: ranks take the devices of the machine in turn
  int64_t most_bytes = 0;                  // of the device's memory; 0: no limit but the device's
  bool tf32 = false;                       // products of float32 numbers with 10 bits
  bool deterministic = false;              // the same bits in every run
  bool records = true;                     // steps that are alike are recorded and replayed
  std::optional<ImageLayout> layout = {};  // none: the one that the device is faster with
};

/// Takes times on the device, whose work is late: a mark is set when it gets there.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual void mark() = 0;
  /// Of all marks, since the first one. Waits for the last.
  virtual std::vector<double> seconds() = 0;
};

/// Work that has been queued once and can be queued again as a whole.
class DeviceRecording {
 public:
  virtual ~DeviceRecording() = default;
  virtual void replay() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  /// Of its tensors.
  virtual at::Device place() const = 0;
  virtual ImageLayout layout() const = 0;
  /// Bytes from an address that is a multiple of 64. Throws OutOfMemory.
  virtual at::Tensor block(int64_t bytes) = 0;
  /// A contiguous tensor on the host, which may be copied from and to without waiting.
  virtual at::Tensor on_host(at::IntArrayRef shape, at::ScalarType type) = 0;
  /// Null where the host computes: what has been called is done.
  virtual DeviceQueue* queue(Stream stream) = 0;
  virtual bool can_record() const = 0;
  /// Of what `body` queues for kernels, which is not done. Null where it cannot be recorded: the
  /// body waited for the device, say. Only where can_record().
  virtual std::unique_ptr<DeviceRecording> record(const std::function<void()>& body) = 0;
  /// Of the queue of kernels; null where the host computes.
  virtual std::unique_ptr<DeviceTimer> timer() = 0;
  /// What tensors hold in the device's memory now, and the most since the last reset.
  virtual int64_t live_bytes() const = 0;
  virtual int64_t peak_bytes() const = 0;
  virtual void reset_peak() = 0;
};

/// The CPU, for anybody.
Device& host_device();
std::unique_ptr<Device> open_host_device(ImageLayout layout);

/// For the calling thread, which works for rank `rank`. Throws InvalidInput where this machine or
/// this build has no such device.
std::unique_ptr<Device> open_device(const DeviceChoice& choice, int rank);

/// Of the device that the calling thread has opened last; the host where it has opened none.
at::Device place_of_this_thread();

/// What `tessera devices` shows.
struct DeviceInfo {
  std::string name;   // as users write it: "cpu", "cuda:0"
  std::string model;  // "NVIDIA H200"
  int64_t bytes = 0;  // of memory; 0: not known
  int64_t free_bytes = 0;
  std::string details = {};  // "compute capability 9.0, 132 multiprocessors"
};
std::vector<DeviceInfo> list_devices();
/// Of one of them, with what is free now.
DeviceInfo device_info(const at::Device& place);
/// For people: "cuda:0 (NVIDIA H200)"; of the CPU "cpu".
std::string name_of(const at::Device& place);
int num_gpus();
/// Why there are none; empty: there are some.
std::string why_no_gpu();

}  // namespace tessera
