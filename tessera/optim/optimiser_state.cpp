#include "tessera/optim/optimiser_state.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

std::string full_name(const OptimiserState::Slot& slot, const Parameter& parameter) {
  return fmt::format("{}.{}", slot.name, parameter.name);
}

std::string describe(at::IntArrayRef sizes, at::ScalarType type) {
  return fmt::format("{} of {}", c10::toString(type), to_string(Shape(sizes.begin(), sizes.end())));
}

}  // namespace

OptimiserState::OptimiserState(std::string optimiser, std::vector<Slot> slots)
    : optimiser_(std::move(optimiser)), slots_(std::move(slots)), tensors_(slots_.size()) {}

at::Tensor& OptimiserState::at(int slot, ParameterId id, const at::Tensor& parameter) {
  std::vector<at::Tensor>& tensors = tensors_[slot];
  if (static_cast<int>(tensors.size()) <= id) tensors.resize(id + 1);
  if (!tensors[id].defined()) tensors[id] = new_tensor(slot, id, parameter).zero_();
  return tensors[id];
}

at::Tensor OptimiserState::find(int slot, ParameterId id) const {
  const std::vector<at::Tensor>& tensors = tensors_[slot];
  return id < static_cast<int>(tensors.size()) ? tensors[id] : at::Tensor();
}

/// As the parameter lies in memory: an element-wise kernel may round differently on other strides.
at::Tensor OptimiserState::new_tensor(size_t slot, ParameterId id,
                                      const at::Tensor& parameter) const {
  if (const auto found = places_.find(id); found != places_.end()) return found->second[slot];
  return slots_[slot].kind == Kind::kCounter ? at::empty({1}, at::kDouble)
                                             : at::empty_like(parameter);
}

int OptimiserState::count(Kind kind) const {
  return static_cast<int>(std::ranges::count(slots_, kind, &Slot::kind));
}

void OptimiserState::keep_in(ParameterId id, const std::vector<at::Tensor>& tensors) {
  TESSERA_CHECK(tensors.size() == slots_.size(), "{} tensors for {} slots", tensors.size(),
                slots_.size());
  places_[id] = tensors;
}

NamedTensors OptimiserState::save(const Graph& graph) const {
  NamedTensors state;
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (id < tensors_[slot].size() && tensors_[slot][id].defined())
        state.emplace_back(full_name(slots_[slot], graph.parameters()[id]), tensors_[slot][id]);
  return state;
}

std::vector<StateTensor> OptimiserState::layout(const Graph& graph, at::ScalarType real) const {
  std::vector<StateTensor> all;
  for (size_t id = 0; id < graph.parameters().size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    if (parameter.role != ParameterRole::kTrainable) continue;
    for (const Slot& slot : slots_) {
      const bool counter = slot.kind == Kind::kCounter;
      all.push_back({full_name(slot, parameter), static_cast<ParameterId>(id),
                     counter ? Shape{1} : parameter.shape, counter ? at::kDouble : real});
    }
  }
  return all;
}

std::vector<std::vector<at::Tensor>> OptimiserState::taken(
    const Graph& graph, const std::vector<at::Tensor>& parameters,
    const NamedTensors& state) const {
  TESSERA_CHECK(parameters.size() == graph.parameters().size(), "{} tensors for {} parameters",
                parameters.size(), graph.parameters().size());
  ByName tensors = index(state);
  std::vector<std::vector<at::Tensor>> loaded(slots_.size(),
                                              std::vector<at::Tensor>(parameters.size()));
  for (size_t id = 0; !state.empty() && id < parameters.size(); ++id)
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (graph.parameters()[id].role == ParameterRole::kTrainable)
        loaded[slot][id] = take(tensors, slots_[slot], graph.parameters()[id], parameters[id]);
  if (!tensors.empty())
    throw_error<InvalidInput>(
        "[{}] the state holds {}, which this optimiser and model do not have ({} such tensors); "
        "resume with the optimiser, its options and the model of the checkpoint",
        optimiser_, tensors.begin()->first, tensors.size());
  return loaded;
}

void OptimiserState::load(const Graph& graph, const std::vector<at::Tensor>& parameters,
                          const NamedTensors& state) {
  std::vector<std::vector<at::Tensor>> loaded = taken(graph, parameters, state);
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    for (size_t id = 0; id < parameters.size(); ++id)
      if (at::Tensor& tensor = loaded[slot][id]; tensor.defined())
        tensor = new_tensor(slot, static_cast<ParameterId>(id), parameters[id]).copy_(tensor);
  tensors_ = std::move(loaded);
}

OptimiserState::ByName OptimiserState::index(const NamedTensors& state) const {
  ByName tensors;
  for (const auto& [name, tensor] : state)
    if (!tensors.emplace(name, tensor).second)
      throw_error<InvalidInput>("[{}] the state holds {} twice", optimiser_, name);
  return tensors;
}

at::Tensor OptimiserState::take(ByName& tensors, const Slot& slot, const Parameter& parameter,
                                const at::Tensor& value) const {
  const std::string name = full_name(slot, parameter);
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw_error<InvalidInput>(
        "[{}] the state has no {}; resume with the optimiser, its options and the model of the "
        "checkpoint, or start anew from its weights",
        optimiser_, name);
  if (!value.defined()) {  // another rank's: it takes and checks it
    tensors.erase(found);
    return at::Tensor();
  }
  check(name, found->second, slot, value);
  const at::Tensor loaded = found->second;
  tensors.erase(found);
  return loaded;
}

void OptimiserState::check(const std::string& name, const at::Tensor& loaded, const Slot& slot,
                           const at::Tensor& value) const {
  const bool counter = slot.kind == Kind::kCounter;
  const at::ScalarType type = counter ? at::kDouble : value.scalar_type();
  const std::vector<int64_t> sizes = counter ? std::vector<int64_t>{1} : value.sizes().vec();
  if (!loaded.defined() || loaded.scalar_type() != type || loaded.sizes() != sizes)
    throw_error<InvalidInput>(
        "[{}] {} is {}, this run needs {}; resume with the model and the --dtype of the checkpoint",
        optimiser_, name,
        loaded.defined() ? describe(loaded.sizes(), loaded.scalar_type()) : "undefined",
        describe(sizes, type));
  if (!counter) return;
  const double count = loaded.item<double>();
  if (!(count >= 0 && count < 0x1p53 && count == std::floor(count)))
    throw_error<InvalidInput>("[{}] {} is {}; a count of steps is a whole number from 0 to 2^53",
                              optimiser_, name, count);
}

void check_optimiser_option(const char* optimiser, const char* option, double value, double below) {
  if (std::isfinite(value) && value >= 0 && value < below) return;
  if (std::isinf(below))
    throw_error<InvalidInput>("[{}] {} {} must be at least 0, and finite", optimiser, option,
                              value);
  throw_error<InvalidInput>("[{}] {} {} must be in [0, {})", optimiser, option, value, below);
}

}  // namespace tessera
