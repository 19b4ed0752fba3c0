#include "tessera/import/import.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/graph/transform.h"
#include "tessera/import/archive.h"
#include "tessera/import/interpreter.h"
#include "tessera/import/trial.h"

namespace tessera {
namespace {

/// The tensors that forward() returned, in order: one, or those in a tuple, list or dictionary.
void collect(const Symbol& symbol, const std::string& file, std::vector<TensorSymbol>* tensors) {
  if (const auto* tensor = std::get_if<std::shared_ptr<TensorSymbol>>(&symbol)) {
    tensors->push_back(**tensor);
  } else if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol)) {
    for (const Symbol& item : (*list)->items) collect(item, file, tensors);
  } else if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&symbol)) {
    for (const Symbol& item : (*tuple)->items) collect(item, file, tensors);
  } else if (const auto* dict = std::get_if<std::shared_ptr<DictSymbol>>(&symbol)) {
    for (const auto& item : (*dict)->items) collect(item.second, file, tensors);
  } else {
    const auto* value = std::get_if<c10::IValue>(&symbol);
    if (value && value->isNone()) return;  // an auxiliary output that is off
    throw_error<Unsupported>(
        "[{}] forward() returns {}; it must return a tensor of the network, or a tuple, list or "
        "dictionary of them",
        file, describe(symbol));
  }
}

void mark_outputs(const Symbol& result, const std::string& file, Graph* graph) {
  std::vector<TensorSymbol> tensors;
  collect(result, file, &tensors);
  if (tensors.empty()) throw_error<InvalidInput>("[{}] forward() returns no tensor", file);
  for (const TensorSymbol& tensor : tensors) {
    if (!tensor.stale.empty())
      throw_error<Unsupported>("[{}] an output is read too late: {}", file, tensor.stale);
    if (!std::is_sorted(tensor.order.begin(), tensor.order.end()) || !tensor.expanded.empty())
      throw_error<Unsupported>(
          "[{}] an output is permuted or expanded; return batch, channels, space", file);
    if (graph->value(tensor.value).producer < 0)
      throw_error<InvalidInput>("[{}] forward() returns its input", file);
    for (ValueId other : graph->outputs())
      if (other == tensor.value)
        throw_error<Unsupported>("[{}] forward() returns one tensor twice; return it once", file);
    graph->mark_output(tensor.value);
  }
}

/// Parameters that forward() never reads stay as they are, and are saved with the others.
void add_unread_weights(const torch::jit::Module& module, ImportedModel* model) {
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point() || tensor.layout() != at::kStrided) return;
    for (const Parameter& parameter : model->graph.parameters()) {
      if (parameter.name == name) return;
      if (!parameter.initial.given.is_alias_of(tensor)) continue;
      model->ties[name] = parameter.name;
      return;
    }
    model->graph.add_parameter({name,
                                tensor.sizes().vec(),
                                ParameterRole::kFrozen,
                                {Initial::Kind::kGiven, 0, tensor.detach()}});
  };
  for (const auto& item : module.named_parameters()) add(item.name, item.value);
  for (const auto& item : module.named_buffers()) add(item.name, item.value);
}

ImportedModel import_module(const std::string& path, const Shape& input) {
  ImportedModel model;
  check_archive(path);
  const torch::jit::Module module = load_module(path);
  const ValueId image = model.graph.add_input("image", ValueType::image(input));
  const std::string file = std::filesystem::path(path).filename().string();
  Interpreter interpreter(model.graph, file);
  try {
    mark_outputs(interpreter.run(module, image), file, &model.graph);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string words = error.what();
    throw_error<InvalidInput>("[{}] its code does not hold together: {}", file,
                              words.substr(0, words.find('\n')));
  }
  model.ties = interpreter.ties();
  add_unread_weights(module, &model);
  model.graph = prune(model.graph, Losses::kKeep);
  model.counters = interpreter.counters();
  return model;
}

}  // namespace

ImportedModel import_torchscript(const std::string& path, const Shape& input) {
  check_is_file(path);
  TrialLimits limits;
  limits.memory_bytes += 6 * static_cast<int64_t>(std::filesystem::file_size(path));
  try_in_child(path, limits, [&] { import_module(path, input); });
  return import_module(path, input);
}

bool names_a_file(const std::string& model) {
  return model.ends_with(".pt") || model.ends_with(".pth") || model.ends_with(".ts") ||
         model.find('/') != std::string::npos;
}

}  // namespace tessera
