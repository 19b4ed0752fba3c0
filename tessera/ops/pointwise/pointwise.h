#pragma once
// Functions of one element at a time: activations and elementary functions. One operator with a
// table of functions, because they differ in three formulas each (forward, gradient, reference) and
// in nothing else. Equal elements give equal bits wherever they lie (see dense_tiles.h), and the
// gradient at a kink is the one that PyTorch's autograd takes.
//
// Backward reads the output where the gradient is a formula of it, else the input, which costs
// nothing after a batch norm: outputs are recomputed from it. Affine functions need neither.
//
// Example:
//   ValueId y = pointwise(graph, x, "act1", {PointwiseFunction::kHardtanh, 0, 6});  // ReLU6

#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

enum class PointwiseFunction {
  kLeakyRelu,
  kElu,
  kCelu,
  kSelu,
  kGelu,
  kGeluTanh,  // GELU by the approximation with tanh
  kSilu,
  kMish,
  kSigmoid,
  kLogSigmoid,
  kTanh,
  kHardswish,
  kHardsigmoid,
  kHardtanh,
  kSoftplus,
  kSoftsign,
  kExp,
  kLog,
  kLog1p,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kAbs,
  kNegate,
  kSquare,
  kPower,
  kSin,
  kCos,
  kAffine,
  kClamp,
  kNormRoot,  // the root in a norm: its gradient at 0 is 0
};
inline constexpr PointwiseFunction kLastPointwiseFunction = PointwiseFunction::kNormRoot;

/// What a and b are, by function; others ignore them:
///   leaky_relu      a = slope
///   elu, celu       a = alpha
///   hardtanh, clamp a = low, b = high, either may be infinite; they differ in the gradient at the
///                   ends, which only clamp lets through
///   softplus        a = beta, b = threshold
///   pow             a = exponent
///   affine          a = factor, b = offset: a * x + b
struct PointwiseOptions {
  PointwiseFunction function;
  double a = 0;
  double b = 0;
};

/// Takes any value of real numbers. The operator's kind is the function's name in PyTorch.
ValueId pointwise(Graph& graph, ValueId x, const std::string& name,
                  const PointwiseOptions& options);

/// The options of a pointwise operator; none where it is another.
std::optional<PointwiseOptions> pointwise_options(const Op& op);

struct PointwiseDescription {
  PointwiseFunction function;
  std::string kind;  // "leaky_relu"
  std::string a;     // "slope"; empty where the function ignores it
  std::string b;
};

/// All of them, in the order of the enumeration.
const std::vector<PointwiseDescription>& pointwise_functions();

/// The function of that kind, where it is one of a pointwise operator.
std::optional<PointwiseFunction> pointwise_function_called(const std::string& kind);

}  // namespace tessera
