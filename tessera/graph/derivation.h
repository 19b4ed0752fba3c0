#pragma once
// Weights that are computed from others: weight standardisation, weight norm, spectral norm. A
// derivation is a short list of functions of whole weights, as plain data. What it gives is a
// parameter of its own (ParameterRole::kDerived), which operators read like any other, but which
// is neither trained nor saved: every rank that holds it computes it at the beginning of a step,
// and turns its gradient into those of its sources.
//
// Example: weight / |weight|
//   Derivation{.result = 1, .sources = {0}, .steps = {{WeightFunction::kNorm, {0}, {0}, {2}},
//                                                     {WeightFunction::kDivide, {0, 1}}}};

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

/// PyTorch's functions of these names. What numbers and factors are, by function:
///   clamp           factors: low, high
///   power           factors: the exponent
///   affine          factors: a, b: a * x + b
///   sum, mean       numbers: whether to keep the axes, axes (none: all)
///   variance,
///   deviation       numbers: whether to keep the axes, the correction (0 or 1), axes
///   norm            numbers: whether to keep the axes, axes; factors: the order
///   reshape, expand numbers: the shape
///   permute         numbers: the axes
///   slice           numbers: the axis, begin, end, step
///   take            numbers: the axis, and which of its positions, one after the other
///   concat          of any number of operands; numbers: the axis
///   weight_norm     of v and g; numbers: the axis that keeps its norms
///   update          numbers: a source, a buffer, which gets the operand in a step that trains. The
///                   result is what it then holds, without a gradient
enum class WeightFunction {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kAbs,
  kExp,
  kTanh,
  kSigmoid,
  kRelu,
  kPower,
  kClamp,
  kAffine,
  kSum,
  kMean,
  kVariance,
  kDeviation,
  kNorm,
  kReshape,
  kExpand,
  kPermute,
  kSlice,
  kTake,
  kConcat,
  kMatmul,
  kWeightNorm,
  kDetach,
  kUpdate,
};
inline constexpr WeightFunction kLastWeightFunction = WeightFunction::kUpdate;

struct WeightStep {
  WeightFunction function = WeightFunction::kAdd;
  std::vector<int> operands;  // the sources, then the results of earlier steps, counted through
  std::vector<int64_t> numbers = {};
  std::vector<double> factors = {};
};

struct Derivation {
  int result = -1;           // the parameter that the last step gives
  std::vector<int> sources;  // parameters, none of them derived; each once
  std::vector<WeightStep> steps;
};

struct Derived {
  at::Tensor result;
  std::vector<std::pair<int, at::Tensor>> updates;  // index of a source, and what it shall hold
};

/// What a step gives, by autograd's operators. Throws InvalidInput where its operands or numbers do
/// not fit, or where the result would have more than 2^31 elements.
at::Tensor apply_step(const WeightStep& step, const std::vector<at::Tensor>& operands);

/// `sources` are the tensors of Derivation::sources. Buffers are updated in steps that train; the
/// caller writes them.
enum class DerivationMode { kEvaluate, kTrain };
Derived derive(const Derivation& derivation, const std::vector<at::Tensor>& sources,
               DerivationMode mode);

}  // namespace tessera
