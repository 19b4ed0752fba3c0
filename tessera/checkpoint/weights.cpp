#include "tessera/checkpoint/weights.h"

#include <c10/core/GradMode.h>

#include "tessera/base/error.h"
#include "tessera/checkpoint/model_fit.h"
#include "tessera/checkpoint/safetensors.h"

namespace tessera {
namespace {

void check_count(const Graph& graph, const std::vector<at::Tensor>& values) {
  TESSERA_CHECK(values.size() == graph.parameters().size(), "{} values for {} parameters",
                values.size(), graph.parameters().size());
}

std::map<std::string, Shape> shapes_of(const SafetensorsFile& file) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  std::map<std::string, Shape> shapes;
  for (const TensorEntry& entry : file.entries())
    if (!std::string_view(entry.name).ends_with(kCounter)) shapes[entry.name] = entry.shape;
  return shapes;
}

}  // namespace

void save_weights(const std::string& path, const Graph& graph,
                  const std::vector<at::Tensor>& values) {
  check_count(graph, values);
  NamedTensors tensors;
  for (size_t i = 0; i < values.size(); ++i)
    tensors.emplace_back(graph.parameters()[i].name, values[i]);
  write_safetensors(path, tensors, {{"format", "pt"}});  // what PyTorch's loaders look for
}

void load_weights(const std::string& path, const Graph& graph, std::vector<at::Tensor>& values) {
  check_count(graph, values);
  const SafetensorsFile file(path);
  check_model_fit(fmt::format("[weights] {}", path), graph, shapes_of(file));
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i)
    values[i].copy_(file.tensor(graph.parameters()[i].name));
}

}  // namespace tessera
