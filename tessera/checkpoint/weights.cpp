#include "tessera/checkpoint/weights.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/checkpoint/model_fit.h"
#include "tessera/checkpoint/safetensors.h"

namespace tessera {
namespace {

constexpr std::string_view kAux = "AuxLogits.";

void check_count(const Graph& graph, const std::vector<at::Tensor>& values) {
  TESSERA_CHECK(values.size() == graph.parameters().size(), "{} values for {} parameters",
                values.size(), graph.parameters().size());
}

bool has_aux_classifier(const Graph& graph) {
  return std::any_of(graph.parameters().begin(), graph.parameters().end(),
                     [](const Parameter& parameter) { return parameter.name.starts_with(kAux); });
}

/// The name that modules have today.
std::string current_name(const std::string& name) {
  if (name.find(".denselayer") == std::string::npos) return name;
  for (const std::string_view old : {".norm.1.", ".norm.2.", ".conv.1.", ".conv.2."})
    if (const size_t at = name.find(old); at != std::string::npos)
      return std::string(name).erase(at + old.size() - 3, 1);  // the dot before the number
  return name;
}

/// The file's names by the model's, without what is passed over.
std::map<std::string, TensorEntry> entries_of(const SafetensorsFile& file, const Graph& graph) {
  const bool keeps_aux = has_aux_classifier(graph);
  std::map<std::string, TensorEntry> entries;
  for (const TensorEntry& entry : file.entries()) {
    if (entry.name.ends_with("num_batches_tracked")) continue;
    if (!keeps_aux && entry.name.starts_with(kAux)) continue;
    const std::string name = current_name(entry.name);
    entries[file.contains(name) ? entry.name : name] = entry;
  }
  return entries;
}

}  // namespace

void save_weights(const std::string& path, const Graph& graph,
                  const std::vector<at::Tensor>& values,
                  const std::map<std::string, std::string>& ties) {
  check_count(graph, values);
  NamedTensors tensors;
  for (size_t i = 0; i < values.size(); ++i)
    if (graph.parameters()[i].persistent)
      tensors.emplace_back(graph.parameters()[i].name, values[i]);
  const size_t num_own = tensors.size();
  for (const auto& [alias, name] : ties)
    for (size_t i = 0; i < num_own; ++i)
      if (tensors[i].first == name) tensors.emplace_back(alias, at::Tensor(tensors[i].second));
  write_safetensors(path, tensors, {{"format", "pt"}});  // what PyTorch's loaders look for
}

void save_gradients(const std::string& path, const Graph& graph,
                    const std::vector<at::Tensor>& gradients) {
  check_count(graph, gradients);
  NamedTensors tensors;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined()) tensors.emplace_back(graph.parameters()[i].name, gradients[i]);
  write_safetensors(path, tensors, {{"format", "pt"}});
}

void load_weights(const std::string& path, const Graph& graph, std::vector<at::Tensor>& values,
                  const std::map<std::string, std::string>& ties) {
  check_count(graph, values);
  const SafetensorsFile file(path);
  std::map<std::string, TensorEntry> entries = entries_of(file, graph);
  for (const auto& [alias, name] : ties) entries.erase(alias);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, entry] : entries) shapes[name] = entry.shape;
  for (const Parameter& parameter : graph.parameters())
    if (!parameter.persistent) shapes[parameter.name] = parameter.shape;  // not from the file
  check_model_fit(fmt::format("[weights] {}", path), graph, shapes);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i)
    if (graph.parameters()[i].persistent && values[i].defined())
      values[i].copy_(file.tensor(entries.at(graph.parameters()[i].name).name));
}

}  // namespace tessera
