#include "tessera/kernels/classes.h"

namespace tessera {

namespace aten {

at::Tensor classes_with_largest_score(const at::Tensor& scores) { return scores.argmax(1); }

}  // namespace aten

const ClassKernels ClassKernels::kAten{.classes_with_largest_score =
                                           aten::classes_with_largest_score};

}  // namespace tessera
