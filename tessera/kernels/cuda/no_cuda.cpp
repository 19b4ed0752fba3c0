#include "tessera/kernels/norm.h"
#include "tessera/kernels/pack.h"

namespace tessera {

const NormKernels* const NormKernels::kCuda = nullptr;
const PackKernels* const PackKernels::kCuda = nullptr;

}  // namespace tessera
