#include "tessera/import/symbol.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

namespace tessera {
namespace {

template <class Items>
std::optional<std::vector<c10::IValue>> all_known(const Items& items, const c10::TypePtr& type) {
  std::vector<c10::IValue> values;
  for (const Symbol& item : items) {
    const std::optional<c10::IValue> value = as_known(item, type);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

c10::TypePtr element_type(const c10::TypePtr& list_type) {
  if (list_type)
    if (const auto list = list_type->cast<c10::ListType>()) return list->getElementType();
  return c10::AnyType::get();
}

std::optional<c10::IValue> known_list(const ListSymbol& list, const c10::TypePtr& type) {
  const c10::TypePtr element = element_type(type);
  const auto values = all_known(list.items, element);
  if (!values) return std::nullopt;
  c10::impl::GenericList result(element);
  for (const c10::IValue& value : *values) result.push_back(value);
  return c10::IValue(std::move(result));
}

}  // namespace

std::shared_ptr<TensorSymbol> make_tensor(ValueId value, CodeView view) {
  auto tensor = std::make_shared<TensorSymbol>();
  tensor->value = value;
  tensor->view = std::move(view);
  tensor->aliases = std::make_shared<AliasGroup>();
  tensor->aliases->members.push_back(tensor);
  return tensor;
}

std::shared_ptr<TensorSymbol> make_view(const std::shared_ptr<TensorSymbol>& base, ValueId value,
                                        CodeView view) {
  auto tensor = std::make_shared<TensorSymbol>();
  tensor->value = value;
  tensor->view = std::move(view);
  tensor->aliases = base->aliases;
  tensor->aliases->members.push_back(tensor);
  return tensor;
}

void write_in_place(const std::shared_ptr<TensorSymbol>& tensor, ValueId value,
                    const CodeView& view, const std::string& writer) {
  for (const std::weak_ptr<TensorSymbol>& member : tensor->aliases->members)
    if (const auto other = member.lock(); other && other != tensor)
      other->stale = "it shares memory with what " + writer +
                     " has changed in place since; use the form without the trailing underscore, "
                     "or inplace=False";
  tensor->value = value;
  tensor->view = view;
}

Symbol known(const c10::IValue& value) {
  if (value.isList()) {
    auto list = std::make_shared<ListSymbol>();
    for (const c10::IValue& item : value.toListRef()) list->items.push_back(known(item));
    return list;
  }
  if (value.isTuple()) {
    auto tuple = std::make_shared<TupleSymbol>();
    for (const c10::IValue& item : value.toTupleRef().elements())
      tuple->items.push_back(known(item));
    return tuple;
  }
  if (value.isGenericDict()) {
    auto dict = std::make_shared<DictSymbol>();
    for (const auto& item : value.toGenericDict())
      dict->items.emplace_back(known(item.key()), known(item.value()));
    return dict;
  }
  return value;
}

Symbol settled(const Symbol& symbol) {
  const auto* made = std::get_if<std::shared_ptr<MadeSymbol>>(&symbol);
  if (made && (*made)->holds == MadeSymbol::Holds::kNumbers) return c10::IValue((*made)->numbers);
  return symbol;
}

std::optional<c10::IValue> as_known(const Symbol& either, const c10::TypePtr& type) {
  const Symbol symbol = settled(either);
  if (const auto* value = std::get_if<c10::IValue>(&symbol)) return *value;
  if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol))
    return known_list(**list, type);
  if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&symbol)) {
    const auto values = all_known((*tuple)->items, nullptr);
    if (values) return c10::ivalue::Tuple::create(*values);
  }
  return std::nullopt;
}

std::string describe(const Symbol& symbol) {
  struct Describe {
    std::string operator()(const c10::IValue& value) const { return "a known " + value.tagKind(); }
    std::string operator()(const std::shared_ptr<TensorSymbol>&) const {
      return "a tensor of the network";
    }
    std::string operator()(const WeightSymbol& weight) const { return "the weight " + weight.name; }
    std::string operator()(const CounterSymbol& counter) const {
      return "the integer tensor " + counter.name;
    }
    std::string operator()(const ObjectSymbol& object) const {
      return "the module " + (object.path.empty() ? std::string("itself") : object.path);
    }
    std::string operator()(const std::shared_ptr<ListSymbol>&) const { return "a list"; }
    std::string operator()(const std::shared_ptr<TupleSymbol>&) const { return "a tuple"; }
    std::string operator()(const std::shared_ptr<DictSymbol>&) const { return "a dictionary"; }
    std::string operator()(const std::shared_ptr<ComputedSymbol>&) const {
      return "a tensor that is computed from weights";
    }
    std::string operator()(const std::shared_ptr<MadeSymbol>& made) const {
      return "a tensor that " + made->maker + " makes";
    }
    std::string operator()(const std::shared_ptr<IndicesSymbol>&) const {
      return "the indices of a max pooling, which Tessera takes for max_unpool only";
    }
    std::string operator()(const UnknownSymbol& unknown) const { return unknown.what; }
  };
  return std::visit(Describe{}, symbol);
}

}  // namespace tessera
