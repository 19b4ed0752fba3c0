#include "tessera/import/recording.h"

#include <algorithm>

namespace tessera {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

constexpr int64_t kMostStatements = 200'000;
constexpr int64_t kMostSteps = 10'000;

void check_index(int64_t index, size_t size, const char* what) {
  if (index < 0 || index >= static_cast<int64_t>(size))
    throw_error<InvalidInput>("there is no {} {}", what, index);
}

// Weights have one of these types.
constexpr at::ScalarType kWeightTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};

void write_tensor(const at::Tensor& tensor, PlainWriter& write) {
  int64_t type = 0;
  while (type < 4 && kWeightTypes[type] != tensor.scalar_type()) ++type;
  if (type == 4)
    throw_error<Unsupported>("a weight has elements of the type {}; use float32",
                             c10::toString(tensor.scalar_type()));
  write(type);
  const at::Tensor dense = tensor.contiguous();
  write.raw(dense.data_ptr(), dense.nbytes());
}

/// `left`: the bytes that may still be taken.
at::Tensor read_tensor(PlainReader& read, const Shape& shape, int64_t* left) {
  const at::ScalarType type = kWeightTypes[read.within(0, 3)];
  const auto element = static_cast<int64_t>(c10::elementSize(type));
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > *left / element / std::max<int64_t>(elements, 1))
      throw_error<InvalidInput>("the weights take more memory than the file allows");
    elements *= size;
  }
  if (elements * element > *left)  // of a number, which has no sizes
    throw_error<InvalidInput>("the weights take more memory than the file allows");
  *left -= elements * element;
  const at::Tensor tensor = at::empty(shape, type);
  read.raw(tensor.data_ptr(), static_cast<size_t>(elements * element));
  return tensor;
}

void write_statement(const Recording::Statement& statement, PlainWriter& write) {
  write(static_cast<int64_t>(statement.index()));
  std::visit(Overloaded{[&](const AddedInput& input) { write(input.name, input.shape); },
                        [&](const Parameter& parameter) {
                          write(parameter.name, parameter.shape, parameter.persistent);
                          write.choice(parameter.role, ParameterRole::kBuffer);
                          write_tensor(parameter.initial.given, write);
                        },
                        [&](const AddedAlias& alias) { write(alias.alias, alias.parameter); },
                        [&](const BuilderCall& call) {
                          write.choice(call.builder, kLastBuilder);
                          write(call.inputs, call.name, call.options);
                        },
                        [&](const MarkedOutput& output) { write(output.value); },
                        [&](const AddedDerivation& derivation) {
                          write(derivation.name, derivation.sources,
                                static_cast<int64_t>(derivation.steps.size()));
                          for (const WeightStep& step : derivation.steps) {
                            write.choice(step.function, kLastWeightFunction);
                            write(step.operands, step.numbers, step.factors);
                          }
                        }},
             statement);
}

void read_statement(PlainReader& read, int64_t* left, Recording* recording) {
  const int64_t kind = read.within(0, std::variant_size_v<Recording::Statement> - 1);
  if (kind == 0) {
    AddedInput input;
    read(input.name, input.shape);
    recording->add(input);
  } else if (kind == 1) {
    Parameter parameter;
    read(parameter.name, parameter.shape, parameter.persistent);
    read.choice(parameter.role, ParameterRole::kBuffer);
    parameter.initial = {Initial::Kind::kGiven, 0, read_tensor(read, parameter.shape, left)};
    recording->add(parameter);
  } else if (kind == 2) {
    AddedAlias alias;
    read(alias.alias, alias.parameter);
    recording->add(alias);
  } else if (kind == 3) {
    BuilderCall call;
    read.choice(call.builder, kLastBuilder);
    read(call.inputs, call.name, call.options);
    recording->add(call);
  } else if (kind == 4) {
    MarkedOutput output;
    read(output.value);
    recording->add(output);
  } else {
    AddedDerivation derivation;
    read(derivation.name, derivation.sources);
    derivation.steps.resize(static_cast<size_t>(read.within(0, kMostSteps)));
    for (WeightStep& step : derivation.steps) {
      read.choice(step.function, kLastWeightFunction);
      read(step.operands, step.numbers, step.factors);
    }
    recording->add(derivation);
  }
}

/// An image, or features, which have no space.
ValueType type_of_input(const Shape& shape) {
  if (shape.size() != 2) return ValueType::image(shape);
  ValueType type = ValueType::image({shape[0], shape[1], 1});
  type.axes.pop_back();
  return type;
}

}  // namespace

ValueId Recording::add(const AddedInput& input) {
  if (input.shape.size() < 2 || input.shape.size() > 5)
    throw_error<InvalidInput>("an input has {} axes", input.shape.size());
  const ValueId value = graph_.add_input(input.name, type_of_input(input.shape));
  statements_.emplace_back(input);
  return value;
}

ParameterId Recording::add(const Parameter& parameter) {
  const size_t before = graph_.parameters().size();
  const ParameterId id = graph_.add_parameter(parameter);
  if (graph_.parameters().size() > before) statements_.emplace_back(parameter);  // else shared
  return id;
}

void Recording::add(const AddedAlias& alias) {
  check_index(alias.parameter, graph_.parameters().size(), "parameter");
  graph_.add_parameter_alias(alias.alias, alias.parameter);
  statements_.emplace_back(alias);
}

/// Buffers that a step of the derivation updates must be its own, so that all ranks that hold one
/// agree on it.
ParameterId Recording::add(const AddedDerivation& added) {
  Derivation derivation{-1, added.sources, added.steps};
  std::vector<at::Tensor> values;
  for (ParameterId source : added.sources) {
    check_index(source, graph_.parameters().size(), "parameter");
    const Parameter& parameter = graph_.parameters()[source];
    if (parameter.role == ParameterRole::kDerived || !parameter.initial.given.defined() ||
        std::count(added.sources.begin(), added.sources.end(), source) > 1)
      throw_error<InvalidInput>("a weight cannot be computed from {}", parameter.name);
    values.push_back(parameter.initial.given.to(at::kDouble));
  }
  const Shape shape = derive(derivation, values, DerivationMode::kTrain).result.sizes().vec();
  for (const WeightStep& step : added.steps) {
    if (step.function != WeightFunction::kUpdate) continue;
    const ParameterId buffer = added.sources[step.numbers[0]];
    bool shared = graph_.parameters()[buffer].role != ParameterRole::kBuffer;
    for (const Derivation& other : graph_.derivations())
      shared = shared || std::count(other.sources.begin(), other.sources.end(), buffer) > 0;
    if (shared)
      throw_error<InvalidInput>("{} is updated, but not a buffer of one computed weight alone",
                                graph_.parameters()[buffer].name);
  }
  Parameter parameter{added.name, shape, ParameterRole::kDerived, {}};
  parameter.persistent = false;
  for (const Parameter& other : graph_.parameters())
    if (other.name == added.name) throw_error<InvalidInput>("the name {} is taken", added.name);
  derivation.result = graph_.add_parameter(parameter);
  graph_.add_derivation(derivation);
  statements_.emplace_back(added);
  return derivation.result;
}

ValueId Recording::add(const BuilderCall& call) {
  for (ValueId input : call.inputs) check_index(input, graph_.values().size(), "value");
  const ValueId value = build(graph_, call);
  statements_.emplace_back(call);
  return value;
}

void Recording::add(const MarkedOutput& output) {
  check_index(output.value, graph_.values().size(), "value");
  graph_.mark_output(output.value);
  statements_.emplace_back(output);
}

void write_recording(const Recording& recording, PlainWriter& write) {
  write(static_cast<int64_t>(recording.statements().size()));
  for (const auto& statement : recording.statements()) write_statement(statement, write);
}

Recording read_recording(PlainReader& read, int64_t most_bytes) {
  Recording recording;
  const int64_t count = read.within(0, kMostStatements);
  for (int64_t i = 0; i < count; ++i) read_statement(read, &most_bytes, &recording);
  return recording;
}

}  // namespace tessera
