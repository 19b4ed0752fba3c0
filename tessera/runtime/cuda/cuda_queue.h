#pragma once
// A CUDA stream as a transport sees it.

#include <c10/cuda/CUDAStream.h>

#include "tessera/comm/device_queue.h"

namespace tessera {

class CudaQueue final : public DeviceQueue {
 public:
  explicit CudaQueue(const c10::cuda::CUDAStream& stream) : stream_(stream) {}

  const c10::cuda::CUDAStream& stream() const { return stream_; }

  std::shared_ptr<const Moment> now() override;
  void wait_for(const Moment& moment) override;
  void copy(void* to, const void* from, int64_t bytes) override;
  void add(void* sums, const void* terms, int64_t count, SumType type) override;
  std::shared_ptr<void> host_memory(int64_t bytes) override;
  void drain() override;
  void* native() override { return stream_.stream(); }

 private:
  c10::cuda::CUDAStream stream_;
};

}  // namespace tessera
