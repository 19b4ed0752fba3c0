// A build without CUDA: families have no kernels of their own for GPUs.

#include "tessera/kernels/convolution.h"
#include "tessera/kernels/optimise.h"

namespace tessera {

const ConvolutionKernels* const ConvolutionKernels::kCuda = nullptr;
const NormOfGradientsKernels* const NormOfGradientsKernels::kCuda = nullptr;
const OptimiserKernels* const OptimiserKernels::kCuda = nullptr;

}  // namespace tessera
