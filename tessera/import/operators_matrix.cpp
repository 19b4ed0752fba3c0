// Matrix products of tensors of the network: attention between pixels, between windows of them, or
// between channels, and the weighted sums that follow.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/import/arrange.h"
#include "tessera/import/contract.h"
#include "tessera/import/operators.h"
#include "tessera/import/weight_arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/softmax.h"

namespace tessera {
namespace {

/// Letters for the axes before the last two, aligned at the right.
std::string leading_letters(int num_axes) {
  const std::string all = "abcdefgh";
  return num_axes <= 2 ? "" : all.substr(all.size() - (num_axes - 2));
}

TensorPointer matrix_product(Call& call, const TensorPointer& a, const TensorPointer& b) {
  const int axes_a = a->view.num_axes(), axes_b = b->view.num_axes();
  if (axes_a < 2 || axes_b < 2 || std::max(axes_a, axes_b) > 8)
    call.refuse(fmt::format("multiplies {} and {}; give matrices, with batches before them",
                            to_string(a->view.shape()), to_string(b->view.shape())));
  if (size_of(a->view[axes_a - 1]) != size_of(b->view[axes_b - 2]))
    call.refuse(fmt::format("multiplies {} with {}", to_string(a->view.shape()),
                            to_string(b->view.shape())));
  const std::string leading = leading_letters(std::max(axes_a, axes_b));
  return contracted(call, a, leading_letters(axes_a) + "ik", b, leading_letters(axes_b) + "kj",
                    leading + "ij");
}

Symbols import_matmul(Call& call) {
  const std::string second = call.op() == "aten::bmm" ? "mat2" : "other";
  if (std::holds_alternative<WeightSymbol>(call[second]) ||
      std::holds_alternative<WeightSymbol>(call["self"]))
    call.refuse("multiplies with a weight; use nn.Linear or F.linear");
  return {matrix_product(call, call.tensor("self"), call.tensor(second))};
}

Symbols import_einsum(Call& call) {
  std::string equation = call.text("equation");
  std::erase(equation, ' ');
  const std::vector<Symbol> operands = call.items("tensors");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const bool plain = std::all_of(equation.begin(), equation.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == ',' || c == '-' || c == '>';
  });
  if (operands.size() != 2 || comma == std::string::npos || arrow == std::string::npos ||
      arrow < comma || !plain)
    call.refuse("'" + equation + "' is not a product of two tensors, such as bic,bjc->bij");
  std::vector<TensorPointer> tensors;
  for (const Symbol& operand : operands) {
    const auto* tensor = std::get_if<TensorPointer>(&operand);
    if (!tensor) call.refuse("multiplies " + describe(operand) + "; give tensors of the network");
    if (!(*tensor)->stale.empty()) call.refuse("reads a tensor too late: " + (*tensor)->stale);
    tensors.push_back(*tensor);
  }
  const std::string a = equation.substr(0, comma);
  const std::string b = equation.substr(comma + 1, arrow - comma - 1);
  const std::string out = equation.substr(arrow + 2);
  const auto fits = [](const std::string& letters, const TensorPointer& tensor) {
    std::string sorted = letters;
    std::sort(sorted.begin(), sorted.end());
    return std::ssize(letters) == tensor->view.num_axes() &&
           std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  };
  if (!fits(a, tensors[0]) || !fits(b, tensors[1]))
    call.refuse("'" + equation + "' needs a letter for each axis, and none twice in a tensor");
  for (char letter : out)
    if (a.find(letter) == std::string::npos && b.find(letter) == std::string::npos)
      call.refuse("'" + equation + "' has a letter in its result that no tensor has");
  return {contracted(call, tensors[0], a, tensors[1], b, out)};
}

TensorPointer scaled(Call& call, const TensorPointer& x, double factor) {
  if (factor == 1) return x;
  const ValueId value = pointwise(call.graph(), x->value, call.name("scale"),
                                  {PointwiseFunction::kAffine, factor, 0});
  return make_tensor(value, x->view);
}

/// Adds a mask of numbers, or of yes and no, to scores.
void add_mask(Call& call, TensorSymbol& scores, Symbol mask) {
  if (std::holds_alternative<TensorPointer>(mask))
    call.refuse("has a mask that depends on the data; give a weight or a constant");
  const auto* constant = std::get_if<c10::IValue>(&mask);
  if (constant && constant->isTensor() && constant->toTensor().scalar_type() == at::kBool) {
    const at::Tensor allowed = constant->toTensor();
    mask = c10::IValue(at::zeros(allowed.sizes(), at::kDouble)
                           .masked_fill(~allowed, -std::numeric_limits<double>::infinity()));
  }
  scores.value = with_weight(call, scores, Arithmetic::kAdd, mask, ParameterOperand::Side::kRight);
}

/// beta * input + alpha * product, of which multi-head attention needs the product and a mask.
Symbols import_baddbmm(Call& call) {
  const double beta = call.real("beta");
  if (beta != 0 && (beta != 1 || call.is_tensor("self")))
    call.refuse("adds a tensor to the product; write it as x + torch.bmm(a, b)");
  TensorPointer product = matrix_product(call, call.tensor("batch1"), call.tensor("batch2"));
  product = scaled(call, product, call.real("alpha"));
  if (beta != 0) add_mask(call, *product, call["self"]);
  return {product};
}

Symbols import_attention(Call& call) {
  const TensorPointer query = call.tensor("query"), key = call.tensor("key");
  const TensorPointer value = call.tensor("value");
  const int axes = query->view.num_axes();
  const int64_t width = size_of(query->view[axes - 1]);
  const double scale =
      call.has("scale") ? call.real("scale") : 1 / std::sqrt(static_cast<double>(width));
  std::vector<int> swapped(key->view.num_axes());
  for (size_t i = 0; i < swapped.size(); ++i) swapped[i] = static_cast<int>(i);
  if (swapped.size() < 2) call.refuse("needs matrices");
  std::swap(swapped.end()[-1], swapped.end()[-2]);
  const TensorPointer keys = make_view(key, key->value, key->view.permuted(swapped));
  TensorPointer scores = scaled(call, matrix_product(call, query, keys), scale);
  if (call.has("attn_mask")) add_mask(call, *scores, call["attn_mask"]);
  if (call.flag("is_causal")) {
    const Shape shape = scores->view.shape();
    const at::Tensor all = at::ones({shape.end()[-2], shape.end()[-1]}, at::kBool);
    add_mask(call, *scores, c10::IValue(all.tril()));
  }
  SoftmaxOptions options;
  options.groups = bring_to_channels(call.graph(), *scores, axes - 1, call.name("rearrange"));
  scores->value = softmax(call.graph(), scores->value, call.name("softmax"), options);
  if (call.real("dropout_p") > 0)
    scores->value =
        dropout(call.graph(), scores->value, call.name("dropout"), {call.real("dropout_p")});
  Symbols results{matrix_product(call, scores, value)};
  if (call.node().outputs().size() > 1)
    results.push_back(UnknownSymbol{"the scores of an attention, which Tessera does not give"});
  return results;
}

}  // namespace

std::vector<Operator> matrix_operators() {
  return {{{"aten::matmul", "aten::bmm"},
           "product of matrices whose rows and columns are pixels, tokens, channels or parts of "
           "them; every rank needs the whole of what it sums over",
           import_matmul},
          {{"aten::einsum"}, "as matmul, for two tensors", import_einsum},
          {{"aten::baddbmm"},
           "as matmul, times alpha; beta = 0, or a mask that is a weight or a constant",
           import_baddbmm},
          {{"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention"},
           "attention as its parts: product, softmax, product; a mask is a weight or a constant",
           import_attention}};
}

}  // namespace tessera
