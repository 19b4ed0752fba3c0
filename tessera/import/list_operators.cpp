#include "tessera/import/list_operators.h"

#include <algorithm>
#include <functional>
#include <map>

#include "tessera/base/error.h"

namespace tessera {
namespace {

using Items = std::vector<Symbol>;
using Results = std::vector<Symbol>;

constexpr size_t kMaxItems = 1'000'000;

int64_t integer(const Symbol& symbol) {
  const auto* value = std::get_if<c10::IValue>(&symbol);
  if (!value || !value->isInt())
    throw_error<InvalidInput>("an index into a list is {}", describe(symbol));
  return value->toInt();
}

/// A bound of a slice, from `low` to `high`; None is the default.
int64_t bound(const Symbol& symbol, int64_t size, int64_t low, int64_t high, int64_t otherwise) {
  const auto* value = std::get_if<c10::IValue>(&symbol);
  if (value && value->isNone()) return otherwise;
  const int64_t at = integer(symbol);
  return std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
}

size_t position(const Symbol& symbol, size_t size) {
  int64_t at = integer(symbol);
  if (at < 0) at += static_cast<int64_t>(size);
  if (at < 0 || at >= static_cast<int64_t>(size))
    throw_error<InvalidInput>("index {} into a list of {} items", integer(symbol), size);
  return static_cast<size_t>(at);
}

Items part(const Items& items, const std::vector<Symbol>& arguments) {
  const auto size = static_cast<int64_t>(items.size());
  int64_t step = arguments.size() > 3 ? integer(arguments[3]) : 1;
  if (step == 0) throw_error<InvalidInput>("step 0 of a slice; give another number");
  step = std::clamp<int64_t>(step, -size - 1, size + 1);
  Items result;
  if (step > 0) {
    const int64_t end = bound(arguments[2], size, 0, size, size);
    for (int64_t i = bound(arguments[1], size, 0, size, 0); i < end; i += step)
      result.push_back(items[i]);
  } else {
    const int64_t end = bound(arguments[2], size, -1, size - 1, -1);
    for (int64_t i = bound(arguments[1], size, -1, size - 1, size - 1); i > end; i += step)
      result.push_back(items[i]);
  }
  return result;
}

bool equal(const Symbol& a, const Symbol& b) {
  const auto* left = std::get_if<c10::IValue>(&a);
  const auto* right = std::get_if<c10::IValue>(&b);
  if (!left || !right) return false;
  if (left->isString() && right->isString()) return left->toStringRef() == right->toStringRef();
  if (left->isInt() && right->isInt()) return left->toInt() == right->toInt();
  if (left->isDouble() && right->isDouble()) return left->toDouble() == right->toDouble();
  if (left->isBool() && right->isBool()) return left->toBool() == right->toBool();
  return false;
}

Symbol make_list(Items items) {
  if (items.size() > kMaxItems) throw_error<InvalidInput>("a list grows beyond a million items");
  return std::make_shared<ListSymbol>(ListSymbol{std::move(items), {}});
}

std::optional<Results> on_list(const std::string& op, const std::shared_ptr<ListSymbol>& list,
                               const std::vector<Symbol>& arguments) {
  Items& items = list->items;
  const auto* other =
      arguments.size() > 1 ? std::get_if<std::shared_ptr<ListSymbol>>(&arguments[1]) : nullptr;
  if (op == "aten::len") return Results{c10::IValue(static_cast<int64_t>(items.size()))};
  if (op == "aten::__getitem__") return Results{items[position(arguments[1], items.size())]};
  if (op == "aten::slice") return Results{make_list(part(items, arguments))};
  if (op == "aten::list" || op == "aten::copy") return Results{make_list(items)};
  const bool changes = op == "aten::append" || op == "aten::_set_item" || op == "aten::reverse" ||
                       op == "aten::insert" || op == "aten::pop" || op == "aten::extend" ||
                       op == "aten::add_";
  if (changes && !list->attribute.empty())
    throw_error<InvalidInput>("forward() changes the list self.{}; copy it first: list(...)",
                              list->attribute);
  if (op == "aten::append") {
    if (items.size() >= kMaxItems) throw_error<InvalidInput>("a list grows beyond a million items");
    items.push_back(arguments[1]);
    return Results{arguments[0]};
  }
  if (op == "aten::_set_item") {
    items[position(arguments[1], items.size())] = arguments[2];
    return Results{arguments[0]};
  }
  if (op == "aten::reverse") {
    std::reverse(items.begin(), items.end());
    return Results{};
  }
  if (op == "aten::insert") {
    items.insert(items.begin() + bound(arguments[1], std::ssize(items), 0, std::ssize(items), 0),
                 arguments[2]);
    return Results{};
  }
  if (op == "aten::pop") {
    const size_t at =
        position(arguments.size() > 1 ? arguments[1] : Symbol(c10::IValue(-1)), items.size());
    const Symbol item = items[at];
    items.erase(items.begin() + static_cast<int64_t>(at));
    return Results{item};
  }
  if (!other) return std::nullopt;
  if (op == "aten::extend" || op == "aten::add_") {
    const Items more = (*other)->items;
    if (items.size() + more.size() > kMaxItems)
      throw_error<InvalidInput>("a list grows beyond a million items");
    items.insert(items.end(), more.begin(), more.end());
    return op == "aten::add_" ? Results{arguments[0]} : Results{};
  }
  if (op == "aten::add") {
    Items sum = items;
    sum.insert(sum.end(), (*other)->items.begin(), (*other)->items.end());
    return Results{make_list(std::move(sum))};
  }
  return std::nullopt;
}

std::optional<Results> on_tuple(const std::string& op, const TupleSymbol& tuple,
                                const std::vector<Symbol>& arguments) {
  if (op == "aten::len") return Results{c10::IValue(static_cast<int64_t>(tuple.items.size()))};
  if (op == "prim::TupleIndex" || op == "aten::__getitem__")
    return Results{tuple.items[position(arguments[1], tuple.items.size())]};
  return std::nullopt;
}

std::optional<Results> on_dict(const std::string& op, DictSymbol& dict,
                               const std::vector<Symbol>& arguments) {
  const auto find = [&](const Symbol& key) {
    return std::find_if(dict.items.begin(), dict.items.end(),
                        [&](const auto& item) { return equal(item.first, key); });
  };
  if (op == "aten::len") return Results{c10::IValue(static_cast<int64_t>(dict.items.size()))};
  if (op == "aten::__contains__")
    return Results{c10::IValue(find(arguments[1]) != dict.items.end())};
  if (op == "aten::__getitem__") {
    const auto found = find(arguments[1]);
    if (found == dict.items.end()) throw_error<InvalidInput>("a key that the dictionary lacks");
    return Results{found->second};
  }
  if (op == "aten::_set_item") {
    const auto found = find(arguments[1]);
    if (found != dict.items.end())
      found->second = arguments[2];
    else
      dict.items.emplace_back(arguments[1], arguments[2]);
    return Results{};
  }
  Items items;
  if (op == "aten::values") {
    for (const auto& item : dict.items) items.push_back(item.second);
    return Results{make_list(std::move(items))};
  }
  if (op == "aten::keys") {
    for (const auto& item : dict.items) items.push_back(item.first);
    return Results{make_list(std::move(items))};
  }
  if (op == "aten::items") {
    for (const auto& item : dict.items)
      items.push_back(std::make_shared<TupleSymbol>(TupleSymbol{{item.first, item.second}}));
    return Results{make_list(std::move(items))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Symbol>> run_on_list(const std::string& op,
                                               const std::vector<Symbol>& arguments) {
  if (arguments.empty()) return std::nullopt;
  if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&arguments[0]))
    return on_list(op, *list, arguments);
  if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&arguments[0]))
    return on_tuple(op, **tuple, arguments);
  if (const auto* dict = std::get_if<std::shared_ptr<DictSymbol>>(&arguments[0]))
    return on_dict(op, **dict, arguments);
  return std::nullopt;
}

}  // namespace tessera
