// A build without CUDA: families have no kernels of their own for GPUs.

#include "tessera/kernels/convolution.h"
#include "tessera/kernels/cross_entropy.h"
#include "tessera/kernels/dropout.h"
#include "tessera/kernels/interpolate.h"
#include "tessera/kernels/label_sum.h"
#include "tessera/kernels/norm.h"
#include "tessera/kernels/norm_statistics.h"
#include "tessera/kernels/optimise.h"
#include "tessera/kernels/pack.h"
#include "tessera/kernels/pool.h"
#include "tessera/kernels/space_sum.h"

namespace tessera {

const AveragePoolKernels* const AveragePoolKernels::kCuda = nullptr;
const ConvolutionKernels* const ConvolutionKernels::kCuda = nullptr;
const CrossEntropyKernels* const CrossEntropyKernels::kCuda = nullptr;
const DropoutKernels* const DropoutKernels::kCuda = nullptr;
const InterpolateKernels* const InterpolateKernels::kCuda = nullptr;
const LabelSumKernels* const LabelSumKernels::kCuda = nullptr;
const MaxPoolKernels* const MaxPoolKernels::kCuda = nullptr;
const NormKernels* const NormKernels::kCuda = nullptr;
const NormOfGradientsKernels* const NormOfGradientsKernels::kCuda = nullptr;
const NormStatisticsKernels* const NormStatisticsKernels::kCuda = nullptr;
const OptimiserKernels* const OptimiserKernels::kCuda = nullptr;
const PackKernels* const PackKernels::kCuda = nullptr;
const SpaceSumKernels* const SpaceSumKernels::kCuda = nullptr;

}  // namespace tessera
