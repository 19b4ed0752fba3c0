#include "tessera/graph/derivation.h"

#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

using WeightOperands = std::vector<at::Tensor>;

constexpr int64_t kMostDerived = int64_t{1} << 31;

size_t num_operands(WeightFunction function) {
  using F = WeightFunction;
  const bool takes_two = function == F::kAdd || function == F::kSubtract ||
                         function == F::kMultiply || function == F::kDivide ||
                         function == F::kMatmul || function == F::kWeightNorm;
  return takes_two ? 2 : 1;
}

size_t num_factors(WeightFunction function) {
  using F = WeightFunction;
  if (function == F::kClamp || function == F::kAffine) return 2;
  return function == F::kPower || function == F::kNorm ? 1 : 0;
}

void check_size(at::IntArrayRef shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMostDerived / std::max<int64_t>(elements, 1))
      throw_error<InvalidInput>("a computed weight has more than 2^31 elements");
    elements *= size;
  }
}

int64_t number_of(const WeightStep& step, size_t index) {
  if (index >= step.numbers.size()) throw_error<InvalidInput>("a computed weight lacks a number");
  return step.numbers[index];
}

int64_t axis_number(const WeightStep& step, const at::Tensor& x) {
  const int64_t axis = number_of(step, 0);
  if (axis < 0 || axis >= x.dim())
    throw_error<InvalidInput>("axis {} of a weight with {}", axis,
                              counted(x.dim(), "axis", "axes"));
  return axis;
}

/// Before memory is taken for the result.
void check_result(const WeightStep& step, const WeightOperands& x) {
  using F = WeightFunction;
  const bool fits =
      step.function == F::kConcat ? !x.empty() : x.size() == num_operands(step.function);
  if (!fits || step.factors.size() != num_factors(step.function))
    throw_error<InvalidInput>("a computed weight has {} operands and {} factors", x.size(),
                              step.factors.size());
  if (step.function == F::kMatmul) {
    if (x[0].dim() < 1 || x[0].dim() > 2 || x[1].dim() < 1 || x[1].dim() > 2)
      throw_error<InvalidInput>("a product of weights takes vectors and matrices");
    check_size({x[0].dim() == 2 ? x[0].size(0) : 1, x[1].dim() == 2 ? x[1].size(1) : 1});
  } else if (step.function == F::kExpand) {
    check_size(step.numbers);
  } else if (step.function == F::kTake) {
    const int64_t axis = axis_number(step, x[0]);
    std::vector<int64_t> shape = x[0].sizes().vec();
    shape[axis] = std::ssize(step.numbers) - 1;
    check_size(shape);
  } else if (step.function == F::kConcat) {
    int64_t elements = 0;
    for (const at::Tensor& part : x) check_size({elements += part.numel()});
  } else if (x.size() == 2) {
    check_size(at::infer_size(x[0].sizes(), x[1].sizes()));
  }
}

/// Along the axis of the first number, the positions of the others.
at::Tensor taken(const WeightStep& step, const at::Tensor& x) {
  const std::vector<int64_t> positions(step.numbers.begin() + 1, step.numbers.end());
  return x.index_select(axis_number(step, x), at::tensor(positions, at::kLong));
}

/// The axes, from number `first` on; none means all.
std::vector<int64_t> axes_of(const WeightStep& step, size_t first, const at::Tensor& x) {
  std::vector<int64_t> axes;
  for (size_t i = first; i < step.numbers.size(); ++i) axes.push_back(step.numbers[i]);
  for (int64_t axis = 0; axis < x.dim() && step.numbers.size() <= first; ++axis)
    axes.push_back(axis);
  return axes;
}

at::Tensor compute_weight(const WeightStep& step, const WeightOperands& x) {
  using F = WeightFunction;
  const auto keep = [&] { return number_of(step, 0) != 0; };
  switch (step.function) {
    case F::kAdd:
      return x[0] + x[1];
    case F::kSubtract:
      return x[0] - x[1];
    case F::kMultiply:
      return x[0] * x[1];
    case F::kDivide:
      return x[0] / x[1];
    case F::kNegate:
      return -x[0];
    case F::kSqrt:
      return x[0].sqrt();
    case F::kRsqrt:
      return x[0].rsqrt();
    case F::kReciprocal:
      return x[0].reciprocal();
    case F::kAbs:
      return x[0].abs();
    case F::kExp:
      return x[0].exp();
    case F::kTanh:
      return x[0].tanh();
    case F::kSigmoid:
      return x[0].sigmoid();
    case F::kRelu:
      return x[0].relu();
    case F::kPower:
      return x[0].pow(step.factors[0]);
    case F::kClamp:
      return x[0].clamp(step.factors[0], step.factors[1]);
    case F::kAffine:
      return x[0] * step.factors[0] + step.factors[1];
    case F::kSum:
      return x[0].sum(axes_of(step, 1, x[0]), keep());
    case F::kMean:
      return x[0].mean(axes_of(step, 1, x[0]), keep());
    case F::kVariance:
      return x[0].var(axes_of(step, 2, x[0]), number_of(step, 1) != 0, keep());
    case F::kDeviation:
      return x[0].std(axes_of(step, 2, x[0]), number_of(step, 1) != 0, keep());
    case F::kNorm:
      return at::norm(x[0], step.factors[0], axes_of(step, 1, x[0]), keep());
    case F::kReshape:
      return x[0].reshape(step.numbers);
    case F::kExpand:
      return x[0].expand(step.numbers);
    case F::kPermute:
      return x[0].permute(step.numbers);
    case F::kSlice:
      return x[0].slice(axis_number(step, x[0]), number_of(step, 1), number_of(step, 2),
                        number_of(step, 3));
    case F::kTake:
      return taken(step, x[0]);
    case F::kConcat:
      return at::cat(x, axis_number(step, x[0]));
    case F::kMatmul:
      return at::matmul(x[0], x[1]);
    case F::kWeightNorm:
      return at::_weight_norm(x[0], x[1], number_of(step, 0));
    case F::kDetach:
    case F::kUpdate:
      return x[0].detach();
  }
  throw_error<InvalidInput>("function {} of weights is unknown", static_cast<int>(step.function));
}

}  // namespace

at::Tensor apply_step(const WeightStep& step, const std::vector<at::Tensor>& operands) {
  try {
    check_result(step, operands);
    return compute_weight(step, operands);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string words = error.what();
    throw_error<InvalidInput>("a computed weight: {}", words.substr(0, words.find('\n')));
  }
}

Derived derive(const Derivation& derivation, const std::vector<at::Tensor>& sources,
               DerivationMode mode) {
  Derived derived;
  std::vector<at::Tensor> results = sources;
  for (const WeightStep& step : derivation.steps) {
    std::vector<at::Tensor> operands;
    for (int operand : step.operands) {
      if (operand < 0 || operand >= std::ssize(results))
        throw_error<InvalidInput>("a computed weight reads result {} of {}", operand,
                                  results.size());
      operands.push_back(results[operand]);
    }
    results.push_back(apply_step(step, operands));
    if (step.function != WeightFunction::kUpdate) continue;
    const int64_t source = number_of(step, 0);
    if (source < 0 || source >= std::ssize(sources) ||
        sources[source].sizes() != results.back().sizes())
      throw_error<InvalidInput>("a computed weight updates what is not a buffer of its shape");
    if (mode == DerivationMode::kTrain)
      derived.updates.emplace_back(static_cast<int>(source), results.back().clone());
    else
      results.back() = sources[source].detach();
  }
  if (results.empty()) throw_error<InvalidInput>("a computed weight has no source");
  derived.result = results.back();
  return derived;
}

}  // namespace tessera
