#include "tessera/ops/loss/loss_reference.h"

namespace tessera {

ReferenceTarget reference_target(const ReferenceArgs& args, int64_t ignore_index) {
  const at::Tensor& prediction = args.inputs[0];
  const at::Tensor target = args.inputs[1].detach();
  if (target.is_floating_point()) return {target, at::ones_like(target, at::kBool)};
  const at::Tensor counts = target != ignore_index;
  const at::Tensor labels = target.masked_fill(counts.logical_not(), 0);
  const int64_t channels = prediction.size(1);
  const at::Tensor values =
      channels == 1 ? labels.unsqueeze(1) : at::one_hot(labels, channels).movedim(-1, 1);
  return {values.to(prediction.scalar_type()), counts.unsqueeze(1).expand_as(prediction)};
}

at::Tensor those_that_count(const at::Tensor& x, const ReferenceTarget& target) {
  return x.contiguous().masked_select(target.counts);
}

}  // namespace tessera
