#pragma once
// Seven functions of two operands on tensors that broadcast to the shape of the result, and the
// gradients of their operands. Tensors may have any strides and are not empty.

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "tessera/kernels/kernel.h"
#include "tessera/kernels/scratch.h"

namespace tessera {

/// Where the operands of maximum and minimum are equal, each gets half of the gradient; the first
/// maximum gives all of it to its left operand, as a maximum along an axis does to the first.
enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum, kFirstMaximum };
inline constexpr Arithmetic kLastArithmetic = Arithmetic::kFirstMaximum;

/// "subtract", "maximum".
std::string to_string(Arithmetic how);

/// Whether the gradient of an operand depends on the operands.
bool gradient_reads_operands(Arithmetic how);

struct ArithmeticKernels {
  /// `result` has the shape that a and b broadcast to.
  void (*compute)(Arithmetic how, const at::Tensor& a, const at::Tensor& b, at::Tensor result);
  /// Stores the gradient of a (operand 0) or b (operand 1), summed over the axes along which it was
  /// stretched. a and b are used only where gradient_reads_operands().
  void (*store_gradient)(Arithmetic how, int operand, const at::Tensor& grad_result,
                         const at::Tensor& a, const at::Tensor& b, at::Tensor gradient,
                         Scratch scratch);

  static const ArithmeticKernels kAten;
};
inline constexpr Kernel<&ArithmeticKernels::compute> compute;
inline constexpr Kernel<&ArithmeticKernels::store_gradient> store_gradient;

/// What that takes of the scratch for a result of `result_numel` elements; `stretched`: the operand
/// has another shape.
int64_t gradient_scratch_bytes(Arithmetic how, int64_t result_numel, bool stretched,
                               at::ScalarType real);

}  // namespace tessera
