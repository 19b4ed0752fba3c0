#include "tessera/checkpoint/model_fit.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr size_t kMaxShown = 10;

std::string shape_text(const Shape& shape) {
  return shape.empty() ? "a single number" : to_string(shape);
}

}  // namespace

std::vector<std::string> model_differences(const Graph& graph,
                                           const std::map<std::string, Shape>& tensors) {
  std::vector<std::string> differences;
  std::set<std::string> known;
  for (const Parameter& parameter : graph.parameters()) {
    known.insert(parameter.name);
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end())
      differences.push_back(
          fmt::format("{} ({}) is missing", parameter.name, shape_text(parameter.shape)));
    else if (found->second != parameter.shape)
      differences.push_back(fmt::format("{} is {} there, the model has {}", parameter.name,
                                        shape_text(found->second), shape_text(parameter.shape)));
  }
  for (const auto& [name, shape] : tensors)
    if (!known.contains(name))
      differences.push_back(fmt::format("{} ({}) is not in the model", name, shape_text(shape)));
  return differences;
}

std::string listed(const std::vector<std::string>& differences) {
  std::string list;
  for (size_t i = 0; i < std::min(differences.size(), kMaxShown); ++i)
    list += fmt::format("\n  {}", differences[i]);
  if (differences.size() > kMaxShown)
    list += fmt::format("\n  and {} more", differences.size() - kMaxShown);
  return list;
}

void check_model_fit(const std::string& place, const Graph& graph,
                     const std::map<std::string, Shape>& tensors) {
  const std::vector<std::string> differences = model_differences(graph, tensors);
  if (differences.empty()) return;
  throw_error<InvalidInput>(
      "{} does not fit the model ({} differences); give the options that the model was made "
      "with:{}",
      place, differences.size(), listed(differences));
}

}  // namespace tessera
