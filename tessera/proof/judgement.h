#pragma once
// Whether the differences that were found are those of rounding.
//
// Fixed limits. Float64: 1e-10 for everything; with AdamW 1e-8, because it divides by the root of
// tiny second moments: the first update is a sign function. Float32: 1e-5 for the loss and 1e-4 for
// outputs; gradients are reported, since another order of summation flips decisions of ReLU and of
// max pooling.
//
// Where something is beyond them, the conditioning is measured (oracle.h). Then the limit of a
// tensor is kFactor times what one rounding does to it in that step, if that is more. A tensor that
// was moved less than half of its kind counts as moved as the one in the middle: that was luck.
//
// Why 20: a placement adds up in another order than the oracle, and a sum rounds several times.
// Over 26 runs of ResNet-50 and -101, Inception-v3, MobileNet v2, U²-Net and R2-attention U-Net the
// largest difference was 6.5 times what one rounding did. And an error that matters is no rounding:
// a relative error of 1e-8 in one halo is 5e7 roundings there, and grows in the network as
// roundings do.
//
// In the first step, before any update, few networks need that: the limits stay where they are as
// long as 20 roundings stay within them.
//
// No limit is raised above 1e-4 (float32: 1e-2). Where rounding alone does more, nothing can be
// told from such a number, and the result is neither right nor wrong.

#include "tessera/proof/oracle.h"

namespace tessera {

/// Of a kind of tensors, without measuring anything; infinite where it is only reported.
double fixed_limit(TensorKind kind, const VerifyOptions& options);

/// Fills the report's maxima, and its verdict by the fixed limits. `steps` in their order.
void judge_strictly(const std::vector<StepComparison>& steps, const VerifyOptions& options,
                    VerifyReport* report);

/// The verdict by what was measured in the same steps.
void judge_by_conditioning(const std::vector<StepComparison>& steps,
                           const std::vector<Conditioning>& measured, const VerifyOptions& options,
                           VerifyReport* report);

}  // namespace tessera
