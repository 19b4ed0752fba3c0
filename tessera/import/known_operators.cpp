#include "tessera/import/known_operators.h"

#include <set>

#include "tessera/base/error.h"
#include "tessera/import/list_operators.h"

namespace tessera {
namespace {

/// TorchScript's own implementation computes these, on numbers, short strings and small constant
/// tensors. None of them has side effects but those that write into their first operand (is_fresh).
const std::set<std::string>& computed_here() {
  static const std::set<std::string> names{"aten::Bool",
                                           "aten::Float",
                                           "aten::FloatImplicit",
                                           "aten::Int",
                                           "aten::IntImplicit",
                                           "aten::ScalarImplicit",
                                           "aten::__and__",
                                           "aten::__contains__",
                                           "aten::__is__",
                                           "aten::__derive_index",
                                           "aten::__range_length",
                                           "aten::dict",
                                           "aten::__isnot__",
                                           "aten::__not__",
                                           "aten::__or__",
                                           "aten::__round_to_zero_floordiv",
                                           "aten::abs",
                                           "aten::all",
                                           "aten::any",
                                           "aten::as_tensor",
                                           "aten::cat",
                                           "aten::concat",
                                           "aten::concatenate",
                                           "aten::count",
                                           "aten::index",
                                           "aten::prod",
                                           "aten::sorted",
                                           "aten::stack",
                                           "aten::sum",
                                           "aten::add",
                                           "aten::add_",
                                           "aten::ceil",
                                           "aten::div",
                                           "aten::eq",
                                           "aten::exp",
                                           "aten::floor",
                                           "aten::floor_divide",
                                           "aten::floordiv",
                                           "aten::format",
                                           "aten::ge",
                                           "aten::gt",
                                           "aten::le",
                                           "aten::len",
                                           "aten::log",
                                           "aten::lt",
                                           "aten::lower",
                                           "aten::mul",
                                           "aten::mul_",
                                           "aten::sub_",
                                           "aten::div_",
                                           "aten::floor_divide_",
                                           "aten::maximum",
                                           "aten::minimum",
                                           "aten::ne",
                                           "aten::neg",
                                           "aten::pow",
                                           "aten::clone",
                                           "aten::contiguous",
                                           "aten::copy_",
                                           "aten::expand",
                                           "aten::fill_",
                                           "aten::find",
                                           "aten::flatten",
                                           "aten::is_autocast_enabled",
                                           "aten::is_grad_enabled",
                                           "aten::logical_and",
                                           "aten::logical_not",
                                           "aten::logical_or",
                                           "aten::bitwise_not",
                                           "aten::masked_fill",
                                           "aten::masked_fill_",
                                           "aten::permute",
                                           "aten::reciprocal",
                                           "aten::roll",
                                           "aten::select",
                                           "aten::slice",
                                           "aten::swapaxes",
                                           "aten::t",
                                           "aten::transpose",
                                           "aten::tril",
                                           "aten::triu",
                                           "aten::where",
                                           "aten::zero_",
                                           "aten::zeros_like",
                                           "aten::ones_like",
                                           "aten::full_like",
                                           "aten::remainder",
                                           "aten::round",
                                           "aten::rsub",
                                           "aten::scalar_tensor",
                                           "aten::sqrt",
                                           "aten::str",
                                           "aten::sub",
                                           "aten::tensor",
                                           "aten::trunc",
                                           "aten::view",
                                           "aten::reshape",
                                           "aten::unsqueeze",
                                           "aten::squeeze",
                                           "aten::item",
                                           "aten::to",
                                           "aten::detach",
                                           "aten::size",
                                           "aten::dim",
                                           "aten::numel",
                                           "aten::is_floating_point",
                                           "aten::list",
                                           "prim::NumToTensor",
                                           "prim::ImplicitTensorToNum",
                                           "prim::abs",
                                           "prim::dtype",
                                           "prim::device",
                                           "prim::isinstance",
                                           "prim::max",
                                           "prim::min",
                                           "prim::tolist",
                                           "prim::type"};
  return names;
}

constexpr int64_t kMostListItems = 1 << 16;
constexpr size_t kMaxText = 4096;

bool is_small(const c10::IValue& value) {
  if (value.isTensor())
    return !value.toTensor().defined() || value.toTensor().numel() <= kMostKnownElements;
  if (value.isString()) return value.toStringRef().size() <= kMaxText;
  if (value.isList()) {
    int64_t elements = 0;
    for (const c10::IValue& item : value.toListRef())
      elements += item.isTensor() && item.toTensor().defined() ? item.toTensor().numel() : 1;
    return std::ssize(value.toListRef()) <= kMostListItems && elements <= kMostKnownElements;
  }
  return true;
}

/// Together with the axes of size 1 that grow: [n, 1] and [1, n] give n * n.
int64_t broadcast_volume(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> shape;
  for (const at::Tensor& tensor : tensors) {
    const int64_t further = tensor.dim() - std::ssize(shape);
    shape.insert(shape.begin(), std::max<int64_t>(further, 0), 1);
    for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
      int64_t& size = shape[shape.size() - static_cast<size_t>(tensor.dim() - axis)];
      size = std::max(size, tensor.size(axis));
    }
  }
  int64_t volume = 1;
  for (int64_t size : shape)
    volume = std::min(volume, kMostKnownElements + 1) * std::min(size, kMostKnownElements + 1);
  return volume;
}

std::vector<at::Tensor> tensors_among(c10::ArrayRef<c10::IValue> values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values)
    if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
  return tensors;
}

/// Whether a few small operands give a small result, asked before memory is taken for it. Those
/// that join a list of tensors give no more than the list has.
bool gives_little(const std::string& op, const std::vector<c10::IValue>& operands) {
  const std::vector<at::Tensor> tensors = tensors_among(operands);
  const bool picks =
      op == "aten::index" && operands[0].isTensor();  // lists and texts have one, too
  if (!picks) return broadcast_volume(tensors) <= kMostKnownElements;
  // The axes that are indexed become those of the indices, the others stay.
  const auto indices = operands[1].toListRef();
  int64_t volume = broadcast_volume(tensors_among(indices));
  for (int64_t axis = 0; axis < tensors[0].dim(); ++axis)
    if (axis >= std::ssize(indices) || indices[axis].isNone())
      volume = std::min(volume, kMostKnownElements + 1) * tensors[0].size(axis);
  return volume <= kMostKnownElements;
}

bool takes_type(const std::string& op) {
  return op == "aten::tensor" || op == "aten::as_tensor" || op == "aten::to" ||
         op == "aten::zeros_like" || op == "aten::ones_like" || op == "aten::full_like";
}

/// Whether a tensor was made by the code itself, and may be changed in place: not an attribute, a
/// view of one, or one out of a list.
bool is_fresh(const torch::jit::Node& maker) {
  static const std::set<std::string> views{
      "aten::view",   "aten::reshape", "aten::unsqueeze",  "aten::squeeze",
      "aten::to",     "aten::detach",  "aten::flatten",    "aten::permute",
      "aten::select", "aten::slice",   "aten::swapaxes",   "aten::transpose",
      "aten::expand", "aten::t",       "aten::contiguous", "aten::as_tensor"};
  static const std::set<std::string> takers{"aten::__getitem__", "aten::pop"};
  const std::string op = maker.kind().toQualString();
  const bool of_tensor =
      !maker.inputs().empty() && maker.inputs()[0]->type()->isSubtypeOf(*c10::TensorType::get());
  if (views.contains(op) && of_tensor) return is_fresh(*maker.inputs()[0]->node());
  return maker.kind() == c10::prim::NumToTensor || (maker.kind().is_aten() && !takers.contains(op));
}

}  // namespace

std::optional<std::vector<Symbol>> run_known(const torch::jit::Node& node,
                                             const std::vector<Symbol>& arguments) {
  const std::string op = node.kind().toQualString();
  if (op == "aten::warn") return std::vector<Symbol>(node.outputs().size(), c10::IValue());
  if (auto results = run_on_list(op, arguments)) {
    results->resize(node.outputs().size(), c10::IValue());
    return results;
  }
  // Whether something is None, or another tensor, is known even of a tensor of the network.
  if (op == "aten::__is__" || op == "aten::__isnot__") {
    const auto is_none = [](const Symbol& symbol) {
      const auto* value = std::get_if<c10::IValue>(&symbol);
      return value && value->isNone();
    };
    if (is_none(arguments[0]) || is_none(arguments[1])) {
      const bool same = is_none(arguments[0]) && is_none(arguments[1]);
      return std::vector<Symbol>{c10::IValue((op == "aten::__is__") == same)};
    }
    const auto* left = std::get_if<std::shared_ptr<TensorSymbol>>(&arguments[0]);
    const auto* right = std::get_if<std::shared_ptr<TensorSymbol>>(&arguments[1]);
    if (left && right)
      return std::vector<Symbol>{c10::IValue((op == "aten::__is__") == (*left == *right))};
  }
  // All tensors of the network and all weights have one type.
  if (op == "aten::eq" || op == "aten::ne") {
    const auto* left = std::get_if<UnknownSymbol>(&arguments[0]);
    const auto* right = std::get_if<UnknownSymbol>(&arguments[1]);
    if (left && right && left->what == kTypeOfTensor && right->what == kTypeOfTensor)
      return std::vector<Symbol>{c10::IValue(op == "aten::eq")};
  }
  if (!computed_here().contains(op)) return std::nullopt;
  std::vector<c10::IValue> stack;
  bool has_text = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto value = as_known(arguments[i], node.inputs()[i]->type());
    // torch.tensor(0.1, dtype=x.dtype): with all digits, to be rounded to the run's type later.
    const auto* unknown = std::get_if<UnknownSymbol>(&arguments[i]);
    if (unknown && unknown->what == kTypeOfTensor && takes_type(op))
      value = c10::IValue(static_cast<int64_t>(at::kDouble));
    if (!value || !is_small(*value)) return std::nullopt;
    has_text = has_text || value->isString();
    stack.push_back(*value);
  }
  if (op.starts_with("aten::mul") && has_text) return std::nullopt;  // "a" * 10**12
  if (!gives_little(op, stack)) return std::nullopt;
  if (!node.maybeOperator()) return std::nullopt;
  if (op.ends_with("_") && !op.ends_with("__") && !is_fresh(*node.inputs()[0]->node()))
    return std::nullopt;
  if (node.schema().is_vararg()) stack.emplace_back(static_cast<int64_t>(stack.size()));
  try {
    node.getOperation()(stack);
  } catch (const std::exception& error) {
    const std::string words = error.what();
    throw_error<InvalidInput>("{} on numbers failed: {}", op, words.substr(0, words.find('\n')));
  }
  std::vector<Symbol> results;
  for (const c10::IValue& value : stack) results.push_back(known(value));
  return results;
}

}  // namespace tessera
