#include "tessera/import/call.h"

#include <fmt/format.h>

#include "tessera/base/text.h"
#include "tessera/import/arrange.h"
#include "tessera/import/repeat.h"
#include "tessera/import/source_place.h"
#include "tessera/import/weight_expression.h"

namespace tessera {

Call::Call(const torch::jit::Node& node, std::vector<Symbol> arguments, Interpreter& interpreter)
    : node_(node),
      arguments_(std::move(arguments)),
      interpreter_(interpreter),
      op_(node.kind().toQualString()) {}

int Call::index_of(const std::string& name) const {
  const auto* schema = node_.maybeSchema();
  if (!schema) refuse("is not an operator that Tessera knows");
  const auto index = schema->argumentIndexWithName(name);
  return index && *index < static_cast<int>(arguments_.size()) ? *index : -1;
}

bool Call::has(const std::string& name) const {
  const int index = index_of(name);
  if (index < 0) return false;
  const auto* value = std::get_if<c10::IValue>(&arguments_[index]);
  return !value || !value->isNone();
}

const Symbol& Call::operator[](const std::string& name) const {
  const int index = index_of(name);
  if (index < 0) refuse(fmt::format("has no argument '{}' in this form", name));
  return arguments_[index];
}

bool Call::is_tensor(const std::string& name) const {
  return std::holds_alternative<TensorPointer>((*this)[name]);
}

Call Call::with(const std::string& name, Symbol argument) const {
  Call other = *this;
  other.arguments_[index_of(name)] = std::move(argument);
  return other;
}

TensorPointer Call::tensor(const std::string& name) const {
  const TensorPointer tensor = tensor_or_expanded(name);
  return tensor->view.is_stretched() ? copy_stretched(*this, *tensor) : tensor;
}

TensorPointer Call::tensor_or_expanded(const std::string& name) const {
  const Symbol& symbol = (*this)[name];
  const auto* tensor = std::get_if<TensorPointer>(&symbol);
  if (!tensor)
    refuse(fmt::format("argument '{}' is {}, not a tensor of the network", name, describe(symbol)));
  if (!(*tensor)->stale.empty()) refuse("reads a tensor too late: " + (*tensor)->stale);
  return *tensor;
}

ValueId Call::image(const std::string& name) { return image(*tensor(name)); }

ValueId Call::image(TensorSymbol& tensor) {
  if (tensor.view.is_stretched()) {
    const TensorPointer copy = copy_stretched(*this, tensor);
    tensor.value = copy->value;
    tensor.view = copy->view;
  }
  if (const std::string why = why_not_plain(graph(), tensor); !why.empty())
    refuse("what it reads " + why);
  return plain_value(graph(), tensor, name("rearrange"));
}

int Call::wrap_axis(int64_t axis, int num_axes) const {
  if (axis < -num_axes || axis >= num_axes)
    refuse(fmt::format("axis {} of a tensor with {}", axis, counted(num_axes, "axis", "axes")));
  return static_cast<int>(axis < 0 ? axis + num_axes : axis);
}

int Call::axis(const std::string& name, const TensorSymbol& tensor) const {
  return wrap_axis(integer(name), tensor.view.num_axes());
}

const c10::IValue& Call::value(const std::string& name, const char* expected) const {
  const Symbol& symbol = (*this)[name];
  const auto* value = std::get_if<c10::IValue>(&symbol);
  if (!value)
    refuse(fmt::format(
        "argument '{}' is {}; Tessera needs {}, known from the code and the input's shape", name,
        describe(symbol), expected));
  return *value;
}

int64_t Call::integer(const std::string& name) const {
  const c10::IValue& number = value(name, "a whole number");
  if (number.isInt()) return number.toInt();
  if (number.isBool()) return number.toBool();
  if (number.isTensor() && number.toTensor().numel() == 1 && !number.toTensor().is_floating_point())
    return number.toTensor().item<int64_t>();
  refuse(fmt::format("argument '{}' is not a whole number", name));
}

double Call::real(const std::string& name) const {
  const c10::IValue& number = value(name, "a number");
  if (number.isDouble()) return number.toDouble();
  if (number.isInt()) return static_cast<double>(number.toInt());
  if (number.isBool()) return number.toBool();
  if (number.isTensor() && number.toTensor().numel() == 1) return number.toTensor().item<double>();
  refuse(fmt::format("argument '{}' is not a number", name));
}

bool Call::flag(const std::string& name) const {
  const c10::IValue& answer = value(name, "true or false");
  if (answer.isBool()) return answer.toBool();
  if (answer.isInt()) return answer.toInt() != 0;
  refuse(fmt::format("argument '{}' is not true or false", name));
}

std::string Call::text(const std::string& name) const {
  const c10::IValue& words = value(name, "a text");
  if (!words.isString()) refuse(fmt::format("argument '{}' is not a text", name));
  return words.toStringRef();
}

std::vector<Symbol> Call::items(const std::string& name) const {
  const Symbol& symbol = (*this)[name];
  if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol)) return (*list)->items;
  if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&symbol))
    return (*tuple)->items;
  return {symbol};
}

std::vector<int64_t> Call::integers(const std::string& name) const {
  std::vector<int64_t> numbers;
  for (const Symbol& item : items(name)) {
    const auto* number = std::get_if<c10::IValue>(&item);
    if (number && number->isInt())
      numbers.push_back(number->toInt());
    else if (number && number->isTensor() && number->toTensor().numel() == 1 &&
             !number->toTensor().is_floating_point())
      numbers.push_back(number->toTensor().item<int64_t>());
    else
      refuse(fmt::format("argument '{}' holds {}, where a whole number is needed", name,
                         describe(item)));
  }
  return numbers;
}

std::vector<int64_t> Call::window_numbers(const std::string& name) const {
  constexpr int64_t kMax = 1 << 16;
  const std::vector<int64_t> numbers = integers(name);
  if (numbers.empty()) refuse(fmt::format("argument '{}' is empty", name));
  for (int64_t number : numbers)
    if (number < -kMax || number > kMax)
      refuse(fmt::format("argument '{}' holds {}; Tessera takes numbers up to {}", name, number,
                         kMax));
  return numbers;
}

std::vector<double> Call::reals(const std::string& name) const {
  std::vector<double> numbers;
  for (const Symbol& item : items(name)) {
    const auto* number = std::get_if<c10::IValue>(&item);
    if (!number || !number->isScalar())
      refuse(fmt::format("argument '{}' holds {}, where a number is needed", name, describe(item)));
    numbers.push_back(number->toScalar().toDouble());
  }
  return numbers;
}

std::optional<double> Call::scalar(const std::string& name) const {
  const auto* number = std::get_if<c10::IValue>(&(*this)[name]);
  if (!number) return std::nullopt;
  if (number->isScalar()) return number->toScalar().toDouble();
  if (number->isTensor() && number->toTensor().defined() && number->toTensor().numel() == 1)
    return number->toTensor().item<double>();
  return std::nullopt;
}

std::optional<WeightSymbol> Call::weight(const std::string& name) {
  return has(name) ? as_weight((*this)[name]) : std::nullopt;
}

std::optional<WeightSymbol> Call::as_weight(const Symbol& symbol) {
  if (const auto* weight = std::get_if<WeightSymbol>(&symbol)) return *weight;
  if (const auto* computed = std::get_if<std::shared_ptr<ComputedSymbol>>(&symbol))
    return interpreter_.derive((*computed)->expression);
  const auto* constant = std::get_if<c10::IValue>(&symbol);
  if (constant && constant->isNone()) return std::nullopt;
  if (constant && constant->isTensor()) return interpreter_.constant(constant->toTensor());
  refuse("reads " + describe(symbol) +
         " where a weight of the module must be, or what is computed from weights alone");
}

std::string Call::name(const std::string& kind) const {
  return interpreter_.node_name(node_, kind);
}

std::string Call::bind_weights(const std::string& kind, std::vector<Binding> bindings) {
  // The usual case: a module's own weights, enc.0.weight and enc.0.bias.
  std::string prefix;
  bool usual = true;
  for (Binding& binding : bindings) {
    if (!binding.weight) continue;
    if (binding.weight->view != binding.weight->tensor.sizes().vec()) {
      if (binding.role != ParameterRole::kTrainable)
        refuse(fmt::format("takes {} in another shape than it is stored in; store it in that shape",
                           binding.weight->name));
      binding.weight = interpreter_.derive(expression_of(*binding.weight));
    }
    const std::string ending = "." + binding.suffix;
    const std::string& full = binding.weight->name;
    const std::string own =
        full.ends_with(ending) ? full.substr(0, full.size() - ending.size()) : "";
    usual = usual && !own.empty() && (prefix.empty() || own == prefix);
    prefix = own;
  }
  // No Python name has a '#', so no alias equals a weight's name.
  const std::string node_name = name(kind) + "#" + std::to_string(graph().graph().nodes().size());
  for (const Binding& binding : bindings) {
    if (!binding.weight) continue;
    const ParameterId id = interpreter_.add_weight(*binding.weight, binding.role);
    if (!usual) graph().add(AddedAlias{node_name + "." + binding.suffix, id});
  }
  return usual && !prefix.empty() ? prefix : node_name;
}

Symbols Call::result(ValueId value) { return result(value, CodeView::plain(type(value).shape())); }

Symbols Call::result(ValueId value, const CodeView& view) {
  if (!in_place()) return {make_tensor(value, view)};
  if (!std::holds_alternative<TensorPointer>(arguments_[0]))
    refuse("changes " + describe(arguments_[0]) + " in place; a network must not change itself");
  const auto& self = std::get<TensorPointer>(arguments_[0]);
  if (view.shape() != self->view.shape()) refuse("changes the shape of a tensor in place");
  write_in_place(self, value, view, op_ + " at " + source_place(node_));
  return {self};
}

}  // namespace tessera
