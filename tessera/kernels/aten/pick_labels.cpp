#include "tessera/kernels/pick_labels.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

void pick_labels(const at::Tensor& from, const std::vector<std::vector<int64_t>>& places,
                 const at::Tensor& to) {
  at::Tensor picked = from;
  for (size_t axis = 0; axis < places.size(); ++axis)
    picked = picked.index_select(static_cast<int64_t>(axis), indices(places[axis], from));
  to.copy_(picked);
}

}  // namespace aten

const LabelPickKernels LabelPickKernels::kAten{.pick_labels = aten::pick_labels};

}  // namespace tessera
