#include "tessera/kernels/cuda/read_table.h"

#include <c10/cuda/CUDAGraphsC10Utils.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::cuda {
namespace {

constexpr size_t kAlignment = 16;

size_t bytes_of_begins(const Terms& terms) {
  const size_t bytes = (terms.size() + 1) * sizeof(int32_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The table as it lies in memory: where the results' reads begin, and the reads.
template <class Real>
std::string bytes_of(const Terms& terms) {
  std::vector<int32_t> begins{0};
  std::vector<AxisRead<Real>> reads;
  for (const std::vector<Term>& of_result : terms) {
    for (const Term& term : of_result) {
      AxisRead<Real> read;
      std::memset(static_cast<void*>(&read), 0, sizeof(read));  // bytes are compared
      read.weight = static_cast<Real>(term.weight);
      read.index = static_cast<int32_t>(term.index);
      reads.push_back(read);
    }
    begins.push_back(static_cast<int32_t>(reads.size()));
  }
  std::string bytes(bytes_of_begins(terms), '\0');
  std::memcpy(bytes.data(), begins.data(), begins.size() * sizeof(int32_t));
  bytes.append(reinterpret_cast<const char*>(reads.data()), reads.size() * sizeof(reads[0]));
  return bytes;
}

at::Tensor copy_to(const at::Device& device, const std::string& bytes) {
  TESSERA_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
                "an interpolation is captured that has never run");
  const auto size = static_cast<int64_t>(bytes.size());
  const at::Tensor host = at::empty({size}, at::kByte);
  std::memcpy(host.data_ptr(), bytes.data(), bytes.size());
  return host.to(device);
}

/// Never destroyed: at the end of the process there may be no device left to free it on.
class Tables {
 public:
  static Tables& shared() {
    static Tables& tables = *new Tables;
    return tables;
  }
  const char* find(std::string bytes, const at::Device& device) {
    const std::lock_guard lock(mutex_);
    auto& of_device = tables_[device.index()];
    auto found = of_device.find(bytes);
    if (found == of_device.end()) {
      at::Tensor copy = copy_to(device, bytes);
      found = of_device.emplace(std::move(bytes), std::move(copy)).first;
    }
    return static_cast<const char*>(found->second.data_ptr());
  }

 private:
  std::mutex mutex_;
  std::map<int, std::map<std::string, at::Tensor>> tables_;
};

}  // namespace

AxisReads read_table(const Terms& terms, bool in_float64, const at::Device& device) {
  const char* const table =
      Tables::shared().find(in_float64 ? bytes_of<double>(terms) : bytes_of<float>(terms), device);
  return {reinterpret_cast<const int32_t*>(table), table + bytes_of_begins(terms)};
}

}  // namespace tessera::cuda
