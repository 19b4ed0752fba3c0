// A build without CUDA: families have no kernels of their own for GPUs.

#include "tessera/kernels/optimise.h"

namespace tessera {

const NormOfGradientsKernels* const NormOfGradientsKernels::kCuda = nullptr;
const OptimiserKernels* const OptimiserKernels::kCuda = nullptr;

}  // namespace tessera
