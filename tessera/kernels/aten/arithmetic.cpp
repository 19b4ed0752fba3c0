#include "tessera/kernels/arithmetic.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// The gradient as it is before sums over stretched axes; `term` has the result's shape. As in
/// PyTorch, where one operand is NaN both get the whole gradient of maximum and minimum.
void store_term(Arithmetic how, int operand, const at::Tensor& grad, const at::Tensor& a,
                const at::Tensor& b, at::Tensor term, Scratch& scratch) {
  const bool left = operand == 0;
  switch (how) {
    case Arithmetic::kAdd:
      term.copy_(grad);
      return;
    case Arithmetic::kSubtract:
      left ? term.copy_(grad) : at::neg_out(term, grad);
      return;
    case Arithmetic::kMultiply:
      at::mul_out(term, grad, left ? b : a);
      return;
    case Arithmetic::kDivide:
      if (left) {
        at::div_out(term, grad, b);
      } else {
        at::div_out(term, a, b);
        term.div_(b).mul_(grad).neg_();
      }
      return;
    case Arithmetic::kFirstMaximum: {
      at::Tensor loses = scratch.take(term.sizes(), at::kBool);
      at::lt_out(loses, a, b);
      if (!left) loses.logical_not_();
      term.copy_(grad).masked_fill_(loses, 0);
      return;
    }
    case Arithmetic::kMaximum:
    case Arithmetic::kMinimum:
      const bool smaller_loses = how == Arithmetic::kMaximum;
      at::Tensor loses = scratch.take(term.sizes(), at::kBool);
      left == smaller_loses ? at::lt_out(loses, a, b) : at::gt_out(loses, a, b);
      at::div_out(term, grad, at::eq_out(term, a, b).add_(1));
      term.masked_fill_(loses, 0);
      return;
  }
}

bool compares(Arithmetic how) {
  return how == Arithmetic::kMaximum || how == Arithmetic::kMinimum ||
         how == Arithmetic::kFirstMaximum;
}

/// Stores in `sum` the sum of `tensor` over the axes along which an operand of sum's shape was
/// stretched to it.
void sum_stretched(const at::Tensor& tensor, const at::Tensor& sum) {
  at::Tensor aligned = sum;
  while (aligned.dim() < tensor.dim()) aligned = aligned.unsqueeze(0);
  std::vector<int64_t> stretched;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (aligned.size(axis) != tensor.size(axis)) stretched.push_back(axis);
  if (stretched.empty())
    aligned.copy_(tensor);  // a sum over no axes would be one over all of them
  else
    at::sum_out(aligned, tensor, stretched, /*keepdim=*/true);
}

}  // namespace

std::string to_string(Arithmetic how) {
  switch (how) {
    case Arithmetic::kAdd:
      return "add";
    case Arithmetic::kSubtract:
      return "subtract";
    case Arithmetic::kMultiply:
      return "multiply";
    case Arithmetic::kDivide:
      return "divide";
    case Arithmetic::kMaximum:
      return "maximum";
    case Arithmetic::kMinimum:
      return "minimum";
    case Arithmetic::kFirstMaximum:
      return "first_maximum";
  }
  throw_error<InternalError>("arithmetic {} is unknown", static_cast<int>(how));
}

bool gradient_reads_operands(Arithmetic how) {
  return how != Arithmetic::kAdd && how != Arithmetic::kSubtract;
}

int64_t gradient_scratch_bytes(Arithmetic how, int64_t result_numel, bool stretched,
                               at::ScalarType real) {
  int64_t bytes = compares(how) ? Scratch::bytes_of(result_numel, at::kBool) : 0;
  if (stretched && gradient_reads_operands(how)) bytes += Scratch::bytes_of(result_numel, real);
  return bytes;
}

namespace aten {

void compute(Arithmetic how, const at::Tensor& a, const at::Tensor& b, at::Tensor result) {
  switch (how) {
    case Arithmetic::kAdd:
      at::add_out(result, a, b);
      return;
    case Arithmetic::kSubtract:
      at::sub_out(result, a, b);
      return;
    case Arithmetic::kMultiply:
      at::mul_out(result, a, b);
      return;
    case Arithmetic::kDivide:
      at::div_out(result, a, b);
      return;
    case Arithmetic::kMaximum:
    case Arithmetic::kFirstMaximum:
      at::maximum_out(result, a, b);
      return;
    case Arithmetic::kMinimum:
      at::minimum_out(result, a, b);
      return;
  }
}

void store_gradient(Arithmetic how, int operand, const at::Tensor& grad_result, const at::Tensor& a,
                    const at::Tensor& b, at::Tensor gradient, Scratch scratch) {
  if (gradient.sizes() == grad_result.sizes())
    return store_term(how, operand, grad_result, a, b, gradient, scratch);
  if (gradient_reads_operands(how)) {
    const at::Tensor term = scratch.take(grad_result.sizes(), grad_result.scalar_type());
    store_term(how, operand, grad_result, a, b, term, scratch);
    sum_stretched(term, gradient);
    return;
  }
  sum_stretched(grad_result, gradient);
  if (how == Arithmetic::kSubtract && operand == 1) gradient.neg_();
}

}  // namespace aten

const ArithmeticKernels ArithmeticKernels::kAten{.compute = aten::compute,
                                                 .store_gradient = aten::store_gradient};

}  // namespace tessera
