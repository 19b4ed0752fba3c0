#include "tessera/import/interpreter.h"

#include <fmt/ranges.h>

#include <torch/csrc/jit/passes/inliner.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/import/archive.h"
#include "tessera/import/arrange.h"
#include "tessera/import/call.h"
#include "tessera/import/known_operators.h"
#include "tessera/import/list_operators.h"
#include "tessera/import/operators.h"
#include "tessera/import/source_place.h"
#include "tessera/import/weight_expression.h"

namespace tessera {
namespace {

/// Far above any network, far below what a hostile loop may ask for.
constexpr int64_t kMaxSteps = 400'000;
constexpr size_t kMaxOperators = 10'000;

/// Tied weights are one tensor under several names.
std::string storage_key(const at::Tensor& tensor) {
  return fmt::format("{} {} {} {}", tensor.storage().data(), tensor.storage_offset(),
                     fmt::join(tensor.sizes(), ","), fmt::join(tensor.strides(), ","));
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace

Symbol Interpreter::run(const torch::jit::Module& module, ValueId image) {
  if (!module.find_method("forward"))
    throw_error<InvalidInput>("[{}] the module has no forward(); save one that has", file_);
  if (!module.type()->getForwardHooks().empty() || !module.type()->getForwardPreHooks().empty())
    throw_error<Unsupported>(
        "[{}] the module has forward hooks; call what they do in forward() instead", file_);
  for (const auto& item : module.named_parameters())
    if (item.value.defined() && item.value.layout() == at::kStrided)
      first_names_.emplace(storage_key(item.value), item.name);
  const auto method = module.get_method("forward");
  const auto graph = method.graph()->copy();
  torch::jit::Inline(*graph);
  const auto& arguments = method.function().getSchema().arguments();
  if (graph->inputs().size() < 2)
    throw_error<InvalidInput>("[{}] forward() takes no input; it must take one image", file_);
  symbols_[graph->inputs()[0]] = ObjectSymbol{module._ivalue(), ""};
  symbols_[graph->inputs()[1]] = make_tensor(image, CodeView::plain(graph_.type(image).shape()));
  for (size_t i = 2; i < graph->inputs().size(); ++i) {
    if (i >= arguments.size() || !arguments[i].default_value())
      throw_error<InvalidInput>(
          "[{}] forward() takes {} inputs; Tessera feeds one image: give the others default "
          "values, "
          " or wrap the model in a module that takes one tensor",
          file_, graph->inputs().size() - 1);
    symbols_[graph->inputs()[i]] = known(*arguments[i].default_value());
  }
  const std::vector<Symbol> results = run_block(*graph->block());
  TESSERA_CHECK(results.size() == 1, "forward() has {} results", results.size());
  if (const auto* tensor = std::get_if<std::shared_ptr<TensorSymbol>>(&results[0]))
    if (const std::string why = why_not_plain(graph_, **tensor); !why.empty())
      refuse(*graph->outputs()[0]->node(), "what forward() returns " + why);
  return results[0];
}

std::vector<Symbol> Interpreter::run_block(const torch::jit::Block& block) {
  for (const Node* node : block.nodes()) run_node(*node);
  std::vector<Symbol> results;
  for (const torch::jit::Value* value : block.outputs()) results.push_back(symbols_.at(value));
  return results;
}

void Interpreter::run_node(const Node& node) {
  if (++num_steps_ > kMaxSteps) refuse(node, "the code takes more than 400000 steps for one image");
  if (graph_.graph().nodes().size() > kMaxOperators)
    refuse(node, "the code makes more than 10000 operators for one image");
  namespace prim = c10::prim;
  if (node.kind() == prim::If) return run_if(node);
  if (node.kind() == prim::Loop) return run_loop(node);
  if (run_structure(node)) return;
  run_operator(node);
}

void Interpreter::run_if(const Node& node) {
  const auto* condition = std::get_if<c10::IValue>(&input(node, 0));
  if (!condition || !(condition->isBool() || condition->isInt()))
    refuse(node,
           "the branch depends on the data (" + describe(input(node, 0)) +
               "); a network that is cut into parts must do the same for every image: branch on "
               "shapes or attributes, or compute both sides");
  const bool taken = condition->isBool() ? condition->toBool() : condition->toInt() != 0;
  bind_all(node, run_block(*node.blocks()[taken ? 0 : 1]));
}

void Interpreter::run_loop(const Node& node) {
  const auto number = [&](const Symbol& symbol) {
    const auto* value = std::get_if<c10::IValue>(&symbol);
    if (!value || !(value->isInt() || value->isBool()))
      refuse(node, "the loop depends on the data (" + describe(symbol) +
                       "); loop a number of times that follows from shapes or attributes");
    return value->isBool() ? static_cast<int64_t>(value->toBool()) : value->toInt();
  };
  const torch::jit::Block& body = *node.blocks()[0];
  const int64_t limit = number(input(node, 0));
  bool going = number(input(node, 1)) != 0;
  std::vector<Symbol> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(input(node, i));
  for (int64_t i = 0; i < limit && going; ++i) {
    if (++num_steps_ > kMaxSteps)
      refuse(node, "the loop takes more than 400000 steps for one image");
    symbols_[body.inputs()[0]] = c10::IValue(i);
    for (size_t k = 0; k < carried.size(); ++k) symbols_[body.inputs()[k + 1]] = carried[k];
    std::vector<Symbol> results = run_block(body);
    going = number(results[0]) != 0;
    carried.assign(std::make_move_iterator(results.begin() + 1),
                   std::make_move_iterator(results.end()));
  }
  bind_all(node, carried);
}

/// Constants, attributes, lists, tuples: what builds and takes apart, but computes nothing.
bool Interpreter::run_structure(const Node& node) {
  namespace prim = c10::prim;
  const auto items = [&]() -> const std::vector<Symbol>& {
    const Symbol& symbol = input(node, 0);
    if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol)) return (*list)->items;
    if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&symbol))
      return (*tuple)->items;
    refuse(node, "it takes apart " + describe(symbol));
  };
  if (node.kind() == prim::Constant) {
    const auto value = torch::jit::toIValue(node.output());
    if (value && value->isTensor()) {
      check_bounds(value->toTensor(), "of a constant");
      bind(node, 0, c10::IValue(value->toTensor().clone()));  // the code may change it in place
    } else {
      bind(node, 0, value ? known(*value) : Symbol(c10::IValue()));
    }
  } else if (node.kind() == prim::GetAttr) {
    bind(node, 0, attribute(node));
  } else if (node.kind() == prim::SetAttr) {
    set_attribute(node);
  } else if (node.kind() == prim::ListConstruct) {
    bind(node, 0, std::make_shared<ListSymbol>(ListSymbol{inputs(node), {}}));
  } else if (node.kind() == prim::TupleConstruct) {
    bind(node, 0, std::make_shared<TupleSymbol>(TupleSymbol{inputs(node)}));
  } else if (node.kind() == prim::DictConstruct) {
    auto dict = std::make_shared<DictSymbol>();
    for (size_t i = 0; i + 1 < node.inputs().size(); i += 2)
      run_on_list("aten::_set_item", {Symbol(dict), input(node, i), input(node, i + 1)});
    bind(node, 0, dict);
  } else if (node.kind() == prim::TupleUnpack || node.kind() == prim::ListUnpack) {
    if (items().size() != node.outputs().size())
      refuse(node, fmt::format("it unpacks {} into {}", counted(std::ssize(items()), "value"),
                               counted(static_cast<int64_t>(node.outputs().size()), "name")));
    bind_all(node, items());
  } else if (node.kind() == prim::unchecked_cast ||
             node.kind() == prim::unchecked_unwrap_optional) {
    bind(node, 0, input(node, 0));
  } else if (node.kind() == prim::Uninitialized) {
    bind(node, 0, UnknownSymbol{"a variable without a value"});
  } else if (node.kind() == prim::RaiseException) {
    raise(node);
  } else {
    return node.kind() == prim::Print;
  }
  return true;
}

void Interpreter::raise(const Node& node) {
  const auto* message = std::get_if<c10::IValue>(&input(node, 0));
  const std::string words =
      message && message->isString() ? message->toStringRef() : std::string("an exception");
  throw_error<InvalidInput>("[{}] for this input the model raises, at {}: {}", file_,
                            source_place(node), words);
}

Symbol Interpreter::attribute(const Node& node) {
  const auto* object = std::get_if<ObjectSymbol>(&input(node, 0));
  const std::string& name = node.s(c10::attr::name);
  if (!object || !object->object) refuse(node, "it reads ." + name + " of no module");
  const c10::IValue value = object->object->getAttr(name);
  const std::string path = joined(object->path, name);
  if (value.isObject() && !value.isModule())
    refuse(node,
           path + " is an object of a TorchScript class; keep tensors and numbers in modules");
  if (value.isObject()) return ObjectSymbol{value.toObject(), path};
  if (!value.isTensor()) {
    Symbol symbol = known(value);
    if (auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol)) (*list)->attribute = path;
    return symbol;
  }
  const at::Tensor tensor = value.toTensor();
  if (!tensor.defined()) return c10::IValue();
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_complex())
    refuse(node, path + " is sparse, quantized or complex; Tessera trains dense real weights");
  const auto& type = *object->object->type();
  const bool is_parameter = type.is_parameter(type.getAttributeSlot(name));
  if (!tensor.is_floating_point() && (is_parameter || tensor.dim() == 0))
    return CounterSymbol{path, tensor};
  if (!tensor.is_floating_point()) return c10::IValue(tensor);  // indices, masks
  const std::string known_as = name_of(node, tensor, path, is_parameter);
  if (known_as != path) ties_[path] = known_as;
  return WeightSymbol{known_as, tensor, tensor.sizes().vec(),
                      is_parameter && tensor.requires_grad()};
}

/// Tied weights have one name, the first that named_parameters() gives, whichever forward() reads
/// first. Weights that share memory in any other way would have to change together.
std::string Interpreter::name_of(const Node& node, const at::Tensor& tensor,
                                 const std::string& path, bool is_parameter) {
  int64_t end = tensor.storage_offset();
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    end += (tensor.size(axis) - 1) * tensor.stride(axis);
  const std::string key = storage_key(tensor);
  const auto first = first_names_.find(key);
  const std::string name = is_parameter && first != first_names_.end() ? first->second : path;
  const Memory own{name, key, tensor.storage_offset(), end, is_parameter};
  std::vector<Memory>& others = memories_[tensor.storage().data()];
  for (const Memory& other : others) {
    if (other.key == own.key && other.is_parameter == is_parameter) return other.name;
    if (own.begin <= other.end && other.begin <= own.end)
      refuse(node, path + " shares memory with " + other.name +
                       " in another form; give it memory of its own: .clone()");
  }
  others.push_back(own);
  return name;
}

void Interpreter::set_attribute(const Node& node) {
  const std::string& name = node.s(c10::attr::name);
  if (const auto* counter = std::get_if<CounterSymbol>(&input(node, 1))) {
    if (counter->name.ends_with("." + name) || counter->name == name)
      return count_up(*counter, counter->pending);
  }
  refuse(node, "forward() sets self." + name +
                   "; a network must not change itself: return the value instead");
}

void Interpreter::run_operator(const Node& node) {
  const std::string op = node.kind().toQualString();
  try {
    std::vector<Symbol> arguments = inputs(node);
    for (Symbol& argument : arguments) argument = settled(argument);
    if (std::optional<std::vector<Symbol>> results = run_known(node, arguments)) {
      bind_all(node, *results);
      return;
    }
    Call call(node, std::move(arguments), *this);
    for (const auto& run : {run_on_weights, run_on_made, run_on_indices})
      if (std::optional<Symbols> results = run(call)) return bind_all(node, *results);
    if (write_out_numbers(call.arguments())) return run_operator(node);
    const Operator* found = find_operator(op);
    if (!found) call.refuse("is not supported; " + remedy_for(op));
    bind_all(node, found->import(call));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[{}] {} at {}: {}", file_, op, source_place(node), error.what());
  }
}

void Interpreter::note_update(const Node& node, const WeightSymbol& buffer) {
  if (!updated_buffers_.insert(buffer.name).second)
    refuse(node, "updates the buffer " + buffer.name +
                     " twice in one step; call the module with it once");
}

WeightSymbol Interpreter::derive(const std::shared_ptr<const WeightExpression>& expression) {
  if (const auto found = derived_.find(expression); found != derived_.end()) return found->second;
  const FlatExpression flat = flatten(expression);
  AddedDerivation derivation;
  derivation.name = fmt::format("#derived{}", derived_.size() + 1);
  derivation.steps = flat.steps;
  for (size_t i = 0; i < flat.sources.size(); ++i)
    derivation.sources.push_back(add_weight(
        flat.sources[i], flat.is_updated[i] ? ParameterRole::kBuffer : ParameterRole::kTrainable));
  graph_.add(derivation);
  WeightSymbol weight;
  weight.name = derivation.name;
  weight.tensor = expression->value;
  weight.view = expression->value.sizes().vec();
  weight.trainable = weight.derived = true;
  weight.persistent = false;
  return derived_[expression] = weight;
}

ParameterId Interpreter::add_weight(const WeightSymbol& weight, ParameterRole role) {
  if (weight.derived) role = ParameterRole::kDerived;
  if (role == ParameterRole::kTrainable && !weight.trainable) role = ParameterRole::kFrozen;
  Parameter parameter{weight.name,
                      weight.tensor.sizes().vec(),
                      role,
                      {Initial::Kind::kGiven, 0, weight.tensor.detach()}};
  parameter.persistent = weight.persistent;
  return graph_.add(parameter);
}

WeightSymbol Interpreter::constant(const at::Tensor& tensor) {
  WeightSymbol weight;
  weight.name = fmt::format("#constant{}", ++num_constants_);
  weight.tensor = tensor.is_floating_point() ? tensor : tensor.to(at::kDouble);
  weight.view = tensor.sizes().vec();
  weight.persistent = false;
  return weight;
}

void Interpreter::refuse(const Node& node, const std::string& why) const {
  throw_error<Unsupported>("[{}] {} at {}: {}", file_, node.kind().toQualString(),
                           source_place(node), why);
}

std::string Interpreter::node_name(const Node& node, const std::string& kind) const {
  return joined(module_path(node), kind);
}

const Symbol& Interpreter::input(const Node& node, size_t index) const {
  return symbols_.at(node.inputs()[index]);
}

std::vector<Symbol> Interpreter::inputs(const Node& node) const {
  std::vector<Symbol> symbols;
  for (const torch::jit::Value* value : node.inputs()) symbols.push_back(symbols_.at(value));
  return symbols;
}

void Interpreter::bind(const Node& node, size_t output, Symbol symbol) {
  symbols_[node.outputs()[output]] = std::move(symbol);
}

void Interpreter::bind_all(const Node& node, const std::vector<Symbol>& symbols) {
  TESSERA_CHECK(symbols.size() == node.outputs().size(), "{} has {} results, got {}",
                node.kind().toQualString(), node.outputs().size(), symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) bind(node, i, symbols[i]);
}

}  // namespace tessera
