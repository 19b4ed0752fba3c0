#include "tessera/runtime/cuda/cuda_queue.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class CudaMoment final : public DeviceQueue::Moment {
 public:
  explicit CudaMoment(const c10::cuda::CUDAStream& stream) { event_.record(stream); }
  // Waiting changes nothing that anybody could see, but is no const function of an event.
  at::cuda::CUDAEvent& event() const { return event_; }

 private:
  mutable at::cuda::CUDAEvent event_;
};

at::Tensor vector_at(void* data, int64_t count, SumType type, const at::Device& device) {
  const at::ScalarType number = type == SumType::kFloat64 ? at::kDouble : at::kFloat;
  return at::from_blob(data, {count}, at::TensorOptions().dtype(number).device(device));
}

}  // namespace

std::shared_ptr<const DeviceQueue::Moment> CudaQueue::now() {
  return std::make_shared<CudaMoment>(stream_);
}

void CudaQueue::wait_for(const Moment& moment) {
  const auto* event = dynamic_cast<const CudaMoment*>(&moment);
  TESSERA_CHECK(event != nullptr, "a moment of another kind of device");
  event->event().block(stream_);
}

void CudaQueue::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  C10_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_));
}

void CudaQueue::add(void* sums, const void* terms, int64_t count, SumType type) {
  if (count == 0) return;
  const c10::cuda::CUDAStreamGuard here(stream_);
  const at::Device device(at::kCUDA, stream_.device_index());
  vector_at(sums, count, type, device)
      .add_(vector_at(const_cast<void*>(terms), count, type, device));
}

std::shared_ptr<void> CudaQueue::host_memory(int64_t bytes) {
  const at::Tensor pinned =
      at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  return {pinned.data_ptr(), [pinned](void*) {}};
}

void CudaQueue::drain() { stream_.synchronize(); }

}  // namespace tessera
