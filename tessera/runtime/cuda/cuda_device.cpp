#include "tessera/runtime/cuda/cuda_device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/runtime/cuda/cuda_queue.h"

namespace tessera {
namespace {

/// LibTorch is told once a process, so all ranks of one ask for the same.
void set_precision(const DeviceChoice& choice) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuDNN(choice.tf32);
  context.setAllowTF32CuBLAS(choice.tf32);
  context.setDeterministicCuDNN(choice.deterministic);
  context.setBenchmarkCuDNN(!choice.deterministic);
}

c10::DeviceIndex checked_index(int index) {
  const int count = num_cuda_devices();
  if (index < 0 || index >= count)
    throw_error<InvalidInput>(
        "[device] cuda:{}: this machine has {} of them; `tessera devices` "
        "lists what there is",
        index, count);
  return static_cast<c10::DeviceIndex>(index);
}

c10::DeviceIndex index_of(const DeviceChoice& choice, int rank) {
  return checked_index(choice.index.value_or(rank % std::max(num_cuda_devices(), 1)));
}

class CudaTimer final : public DeviceTimer {
 public:
  explicit CudaTimer(const c10::cuda::CUDAStream& stream) : stream_(stream) {}

  void mark() override { marks_.emplace_back(cudaEventDefault).record(stream_); }

  std::vector<double> seconds() override {
    stream_.synchronize();
    std::vector<double> seconds;
    for (at::cuda::CUDAEvent& mark : marks_)
      seconds.push_back(marks_.front().elapsed_time(mark) / 1e3);
    return seconds;
  }

 private:
  const c10::cuda::CUDAStream stream_;
  std::deque<at::cuda::CUDAEvent> marks_;
};

class CudaRecording final : public DeviceRecording {
 public:
  void replay() override { graph_.replay(); }

  /// Throws what the body throws, and where it did what cannot be recorded.
  void take(const std::function<void()>& body) {
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      body();
    } catch (...) {
      end_quietly();
      throw;
    }
    graph_.capture_end();
  }

 private:
  void end_quietly() {
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {
      cudaGetLastError();  // of the recording that has failed
    }
  }

  at::cuda::CUDAGraph graph_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const DeviceChoice& choice, c10::DeviceIndex index)
      : place_(at::kCUDA, index),
        before_(c10::cuda::getCurrentCUDAStream(index)),
        layout_(choice.layout.value_or(ImageLayout::kChannelsLast)),
        records_(choice.records),
        compute_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)),
        communication_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, index)) {
    c10::cuda::set_device(index);
    c10::cuda::setCurrentCUDAStream(compute_.stream());
    if (choice.most_bytes > 0) limit(choice.most_bytes);
  }

  /// Others may hold memory that queued work still names. What LibTorch keeps for later goes back,
  /// so that others see it as free. A device that has failed refuses; whoever met its error says
  /// so.
  ~CudaDevice() override {
    try {
      compute_.drain();
      communication_.drain();
    } catch (const c10::Error&) {
    }
    c10::cuda::setCurrentCUDAStream(before_);
    try {
      c10::cuda::CUDACachingAllocator::emptyCache();
    } catch (const c10::Error&) {
    }
  }

  at::Device place() const override { return place_; }
  ImageLayout layout() const override { return layout_; }
  at::Tensor block(int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(place_));
  }
  at::Tensor on_host(at::IntArrayRef shape, at::ScalarType type) override {
    return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(true));
  }
  DeviceQueue* queue(Stream stream) override {
    return stream == Stream::kCompute ? &compute_ : &communication_;
  }
  bool can_record() const override { return records_; }
  std::unique_ptr<DeviceRecording> record(const std::function<void()>& body) override {
    auto recording = std::make_unique<CudaRecording>();
    compute_.drain();
    try {
      recording->take(body);
    } catch (const std::exception&) {
      return nullptr;  // done one by one, it says what is wrong
    }
    return recording;
  }
  std::unique_ptr<DeviceTimer> timer() override {
    return std::make_unique<CudaTimer>(compute_.stream());
  }
  int64_t live_bytes() const override { return allocated().current; }
  int64_t peak_bytes() const override { return allocated().peak; }
  void reset_peak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(place_.index()); }

 private:
  c10::CachingAllocator::Stat allocated() const {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(place_.index()).allocated_bytes[0];
  }

  /// Of all that LibTorch takes: arena, parameters and the libraries' workspaces.
  void limit(int64_t bytes) const {
    const auto total =
        static_cast<double>(at::cuda::getDeviceProperties(place_.index())->totalGlobalMem);
    c10::cuda::CUDACachingAllocator::setMemoryFraction(
        std::min(1.0, static_cast<double>(bytes) / total), place_.index());
  }

  const at::Device place_;
  const c10::cuda::CUDAStream before_;
  const ImageLayout layout_;
  const bool records_;
  CudaQueue compute_, communication_;
};

}  // namespace

std::unique_ptr<Device> open_cuda_device(const DeviceChoice& choice, int rank) {
  if (const std::string reason = why_no_cuda(); !reason.empty())
    throw_error<InvalidInput>("[device] cuda: {}", reason);
  at::globalContext().lazyInitDevice(at::kCUDA);
  set_precision(choice);
  return std::make_unique<CudaDevice>(choice, index_of(choice, rank));
}

int num_cuda_devices() { return c10::cuda::device_count(); }

DeviceInfo describe_cuda_device(int index) {
  const c10::DeviceIndex checked = checked_index(index);
  DeviceInfo info;
  info.name = fmt::format("cuda:{}", index);
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return info;
  info.model = properties.name;
  info.bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.details = fmt::format("compute capability {}.{}, {} multiprocessors", properties.major,
                             properties.minor, properties.multiProcessorCount);
  const c10::cuda::CUDAGuard this_one(checked);  // the calling thread may work on another
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) info.free_bytes = static_cast<int64_t>(free);
  return info;
}

std::string why_no_cuda() {
  if (c10::cuda::device_count() > 0) return {};
  return "no GPU is visible; see whether nvidia-smi lists one and CUDA_VISIBLE_DEVICES hides none, "
         "or use cpu";
}

}  // namespace tessera
