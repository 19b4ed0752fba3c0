#include "tessera/graph/graph.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera {
namespace {

/// The most elements that one value may have. Far beyond any memory, and small enough that sums of
/// bytes and FLOPs over a whole graph stay inside 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 48;

/// Drawing so many numbers is worth a thread.
constexpr int64_t kElementsOfATask = 1 << 14;

bool has_legal_volume(const Shape& shape) {
  int64_t volume = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMaxElements / volume) return false;
    volume *= std::max<int64_t>(size, 1);
  }
  return true;
}

void check_volume(const ValueType& type, const std::string& place, const char* what) {
  if (!has_legal_volume(type.shape()))
    throw_error<InvalidInput>("[{}] its {} {} has more than 2^48 elements; use a smaller input",
                              place, what, to_string(type));
}

/// Drawn in float64 and rounded one by one: a tensor of float64 would be most of a large network's
/// memory.
template <class Draw>
at::Tensor drawn(const Shape& shape, at::ScalarType type, const Draw& draw) {
  at::Tensor tensor = at::empty(shape, type);
  AT_DISPATCH_FLOATING_TYPES(type, "initial_value", [&] {
    scalar_t* data = tensor.data_ptr<scalar_t>();
    at::parallel_for(0, tensor.numel(), kElementsOfATask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<scalar_t>(draw(i));
    });
  });
  return tensor;
}

}  // namespace

int64_t Parameter::numel() const { return Box::whole(shape).volume(); }

ValueId Graph::add_input(const std::string& name, const ValueType& type) {
  check_volume(type, name, "shape");
  const ValueId id = static_cast<ValueId>(values_.size());
  values_.push_back({name, type, -1, {}});
  inputs_.push_back(id);
  return id;
}

ParameterId Graph::add_parameter(const Parameter& parameter) {
  if (!has_legal_volume(parameter.shape))
    throw_error<InvalidInput>("[graph] parameter {} of shape {} has more than 2^48 elements",
                              parameter.name, to_string(parameter.shape));
  const auto found = parameter_ids_.find(parameter.name);
  if (found == parameter_ids_.end()) {
    parameters_.push_back(parameter);
    const auto id = static_cast<ParameterId>(parameters_.size() - 1);
    parameter_ids_[parameter.name] = id;
    return id;
  }
  const Parameter& known = parameters_[found->second];
  const bool roles_agree =
      known.role == parameter.role ||
      (parameter.role == ParameterRole::kTrainable &&
       (known.role == ParameterRole::kFrozen || known.role == ParameterRole::kDerived));
  if (known.shape != parameter.shape)
    throw_error<InvalidInput>("[graph] parameter {} is {} and cannot be shared as {}", known.name,
                              to_string(known.shape), to_string(parameter.shape));
  if (!roles_agree)
    throw_error<InvalidInput>(
        "[graph] parameter {} is shared in two roles (weight, frozen weight, running statistic); "
        "give each its own",
        known.name);
  return found->second;
}

void Graph::add_derivation(const Derivation& derivation) {
  const auto role = [&](ParameterId id) {
    TESSERA_CHECK(id >= 0 && id < std::ssize(parameters_), "there is no parameter {}", id);
    return parameters_[id].role;
  };
  TESSERA_CHECK(role(derivation.result) == ParameterRole::kDerived, "{} is not derived",
                parameters_[derivation.result].name);
  for (ParameterId source : derivation.sources)
    TESSERA_CHECK(role(source) != ParameterRole::kDerived, "{} is derived itself",
                  parameters_[source].name);
  derivations_.push_back(derivation);
}

void Graph::add_parameter_alias(const std::string& alias, ParameterId parameter) {
  const bool is_new = parameter_ids_.emplace(alias, parameter).second;
  TESSERA_CHECK(is_new, "the name {} is taken", alias);
}

void Graph::set_initial(ParameterId parameter, const Initial& initial) {
  parameters_[parameter].initial = initial;
}

ValueId Graph::add_node(const std::string& name, std::shared_ptr<const Op> op,
                        const std::vector<ValueId>& inputs,
                        const std::vector<ParameterId>& parameters,
                        const std::vector<ParameterId>& buffers) {
  Node node{name,       std::move(op), inputs, static_cast<ValueId>(values_.size()),
            parameters, buffers,       {}};
  for (int suffix = 2; node_names_.contains(node.name); ++suffix)
    node.name = fmt::format("{}_{}", name, suffix);
  for (ValueId input : inputs) node.types.inputs.push_back(type(input));
  try {
    node.types.output = node.op->infer_type(node.types.inputs);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[{} {}] {}", node.op->kind(), node.name, error.what());
  }
  check_volume(node.types.output, fmt::format("{} {}", node.op->kind(), node.name), "output");
  const NodeId id = static_cast<NodeId>(nodes_.size());
  for (size_t input = 0; input < inputs.size(); ++input)
    values_[inputs[input]].uses.push_back({id, static_cast<int>(input)});
  values_.push_back({node.name, node.types.output, id, {}});
  node_names_.insert(node.name);
  nodes_.push_back(std::move(node));
  return nodes_.back().output;
}

void Graph::set_size_rule(ValueId value, const SizeRule& rule) {
  TESSERA_CHECK(rule.like >= 0 && rule.like < value, "{} cannot have the size of value {}",
                values_[value].name, rule.like);
  values_[value].size_rule = rule;
}

void Graph::mark_output(ValueId value) { outputs_.push_back(value); }

int64_t Graph::num_trainable() const {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_)
    if (parameter.role == ParameterRole::kTrainable) total += parameter.numel();
  return total;
}

bool Graph::is_trained(ParameterId parameter) const {
  const ParameterRole role = parameters_[parameter].role;
  return role == ParameterRole::kTrainable || role == ParameterRole::kDerived;
}

bool Graph::has_trainable(const Node& node) const {
  return node.op->trains_parameters() &&
         std::any_of(node.parameters.begin(), node.parameters.end(),
                     [&](ParameterId id) { return is_trained(id); });
}

at::Tensor initial_value(const Parameter& parameter, uint64_t seed, at::ScalarType type) {
  const Initial& initial = parameter.initial;
  const RandomKey key = RandomKey(seed).with(parameter.name);
  switch (initial.kind) {
    case Initial::Kind::kConstant:
      return at::full(parameter.shape, initial.value, type);
    case Initial::Kind::kUniform:
      return drawn(parameter.shape, type,
                   [&](int64_t i) { return initial.value * (2 * key.uniform(i) - 1); });
    case Initial::Kind::kNormal:
      return drawn(parameter.shape, type, [&](int64_t i) { return initial.value * key.normal(i); });
    case Initial::Kind::kGiven:
      break;
  }
  return initial.given.to(type, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace tessera
