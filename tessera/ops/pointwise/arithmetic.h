#pragma once
// Arithmetic of two values, or of a value and a parameter, with PyTorch's broadcasting: the product
// of squeeze-and-excitation (image x [N, C, 1, 1]), attention maps ([N, 1, space]), LayerScale and
// learned gates ([C, 1, 1]), positional maps ([C, space]), the normalisation of an input by
// constants. A stretched operand is read whole along its axes of size 1; its gradient is the sum
// over what it was stretched to.
//
// Example:
//   ValueId scale = spatial_reduction(graph, x, "squeeze", {});
//   ValueId y = arithmetic(graph, x, scale, "excite", Arithmetic::kMultiply);
//   ValueId z = arithmetic_with_parameter(graph, y, "gamma", Arithmetic::kMultiply,
//                                         {.shape = {channels, 1, 1}});

#include <string>

#include "tessera/graph/graph.h"
#include "tessera/kernels/arithmetic.h"

namespace tessera {

/// a (how) b. The result has the axes of the operand with more of them (of `a`, when both have as
/// many), at the size and stride of the operand that is larger there.
ValueId arithmetic(Graph& graph, ValueId a, ValueId b, const std::string& name, Arithmetic how);

struct ParameterOperand {
  enum class Side { kLeft, kRight };

  Shape shape;               // broadcasts to that of the value without making it larger
  Shape stored = {};         // the parameter's own shape, of as many elements; empty: `shape`
  Side side = Side::kRight;  // x - p or p - x
  ParameterRole role = ParameterRole::kTrainable;
  Initial initial = {};
};

/// x (how) p, for the parameter `name`.weight. Every piece reads its slice of it.
ValueId arithmetic_with_parameter(Graph& graph, ValueId x, const std::string& name, Arithmetic how,
                                  const ParameterOperand& operand);

/// The same with autograd, for the reference path.
at::Tensor reference_arithmetic(Arithmetic how, const at::Tensor& a, const at::Tensor& b);

}  // namespace tessera
