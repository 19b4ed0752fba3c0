#include "tessera/kernels/norm.h"

namespace tessera {

const NormKernels* const NormKernels::kCuda = nullptr;

}  // namespace tessera
