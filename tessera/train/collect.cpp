#include "tessera/train/collect.h"

#include "tessera/base/error.h"
#include "tessera/comm/outstanding.h"

namespace tessera {
namespace {

int64_t bytes_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

at::Tensor dense_own(const HeldTensor& tensor) {
  TESSERA_CHECK(tensor.own.defined() && tensor.own.scalar_type() == tensor.type &&
                    tensor.own.sizes() == at::IntArrayRef(tensor.shape),
                "a rank does not have the {} that it is to hold", to_string(tensor.shape));
  return tensor.own.cpu().contiguous();
}

std::vector<at::Tensor> receive_others(Transport& transport,
                                       const std::vector<HeldTensor>& tensors) {
  std::vector<at::Tensor> whole;
  Batch batch;
  for (const HeldTensor& tensor : tensors) {
    const int from = tensor.holders.front();
    whole.push_back(from == 0 ? dense_own(tensor) : at::empty(tensor.shape, tensor.type));
    if (from != 0)
      batch.receives.push_back({from, whole.back().data_ptr(), bytes_of(whole.back())});
  }
  Outstanding(transport, batch, "a collection").finish();
  return whole;
}

void send_own(Transport& transport, const std::vector<HeldTensor>& tensors) {
  std::vector<at::Tensor> sent;
  Batch batch;
  for (const HeldTensor& tensor : tensors) {
    if (tensor.holders.front() != transport.rank()) continue;
    sent.push_back(dense_own(tensor));
    batch.sends.push_back({0, sent.back().data_ptr(), bytes_of(sent.back())});
  }
  Outstanding(transport, batch, "a collection").finish();
}

}  // namespace

std::vector<at::Tensor> collect_on_first(Transport& transport,
                                         const std::vector<HeldTensor>& tensors) {
  if (transport.rank() == 0) return receive_others(transport, tensors);
  send_own(transport, tensors);
  return {};
}

}  // namespace tessera
