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

/// Zip archives of torch.save, and the plain pickles that it wrote before.
void refuse_pickle(const std::string& path) {
  const InputFile file(path, "weights");
  unsigned char first[2] = {};
  if (file.size() >= sizeof(first)) file.read_at(0, first, sizeof(first));
  const bool is_zip = first[0] == 'P' && first[1] == 'K';
  const bool is_pickle = first[0] == 0x80 && first[1] >= 2 && first[1] <= 5;
  if (!is_zip && !is_pickle) return;
  throw_error<InvalidInput>(
      "[weights] {} is a file of torch.save, and reading one can run code that it holds; convert "
      "it where you trust it, and give the result:\n"
      "  python3 -c \"import torch, safetensors.torch as s; s.save_file({{k: v.clone() for k, v in "
      "torch.load('{}', map_location='cpu').items()}}, 'weights.safetensors')\"\n"
      "Where it holds more than the state dict, take that from it: "
      "torch.load(...)['state_dict'].items()",
      path, path);
}

/// A file under the names of a model.
class WeightsFile {
 public:
  WeightsFile(const std::string& path, const Graph& graph,
              const std::map<std::string, std::string>& ties)
      : file_(checked(path)), entries_(entries_of(file_, graph)) {
    for (const auto& [alias, name] : ties) entries_.erase(alias);
    for (const auto& [name, entry] : entries_) shapes_[name] = entry.shape;
    for (const Parameter& parameter : graph.parameters())
      if (!parameter.persistent) shapes_[parameter.name] = parameter.shape;  // not from the file
  }

  const std::map<std::string, Shape>& shapes() const { return shapes_; }
  int64_t num_fitting(const Graph& graph) const {
    return std::ranges::count_if(graph.parameters(), [&](const Parameter& p) { return fits(p); });
  }
  void copy_fitting(const Graph& graph, std::vector<at::Tensor>& values) const {
    check_count(graph, values);
    const c10::NoGradGuard no_grad;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].defined() && fits(graph.parameters()[i]))
        values[i].copy_(file_.tensor(entries_.at(graph.parameters()[i].name).name));
  }

 private:
  static const std::string& checked(const std::string& path) {
    refuse_pickle(path);
    return path;
  }
  bool fits(const Parameter& parameter) const {
    const auto found = entries_.find(parameter.name);
    return parameter.persistent && found != entries_.end() &&
           found->second.shape == parameter.shape;
  }

  SafetensorsFile file_;
  std::map<std::string, TensorEntry> entries_;  // by the model's names
  std::map<std::string, Shape> shapes_;
};

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
  const WeightsFile file(path, graph, ties);
  check_model_fit(fmt::format("[weights] {}", path), graph, file.shapes());
  file.copy_fitting(graph, values);
}

std::vector<std::string> load_fitting_weights(const std::string& path, const Graph& graph,
                                              std::vector<at::Tensor>& values,
                                              const std::map<std::string, std::string>& ties) {
  const WeightsFile file(path, graph, ties);
  if (file.num_fitting(graph) == 0)
    check_model_fit(fmt::format("[weights] {}", path), graph, file.shapes());
  file.copy_fitting(graph, values);
  return model_differences(graph, file.shapes());
}

}  // namespace tessera
