#include "tessera/kernels/pack.h"

#include "tessera/base/error.h"

namespace tessera {

namespace aten {

void move_boxes(BoxStore store, const std::vector<at::Tensor>& sources,
                const std::vector<at::Tensor>& targets) {
  TESSERA_CHECK(sources.size() == targets.size(), "{} boxes for {} places", sources.size(),
                targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (store == BoxStore::kAdd)
      targets[i].add_(sources[i]);
    else
      targets[i].copy_(sources[i]);
  }
}

void zero_boxes(const std::vector<at::Tensor>& targets) {
  for (const at::Tensor& target : targets) target.zero_();
}

}  // namespace aten

const PackKernels PackKernels::kAten{.move_boxes = aten::move_boxes,
                                     .zero_boxes = aten::zero_boxes};

}  // namespace tessera
