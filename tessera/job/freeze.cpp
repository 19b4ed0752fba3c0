#include "tessera/job/freeze.h"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/transform.h"

namespace tessera {
namespace {

bool names(const std::string& pattern, const Parameter& parameter) {
  return fnmatch(pattern.c_str(), parameter.name.c_str(), 0) == 0;
}

void check_pattern(const Graph& graph, const std::string& pattern) {
  std::vector<std::string> trainable;
  for (const Parameter& parameter : graph.parameters()) {
    if (parameter.role != ParameterRole::kTrainable) continue;
    if (names(pattern, parameter)) return;
    trainable.push_back(parameter.name);
  }
  const size_t shown = std::min<size_t>(3, trainable.size());
  throw_error<InvalidInput>(
      "[--freeze] '{}' names no weight; * stands for any text and ? for one character; weights "
      "are {}{}",
      pattern, joined({trainable.begin(), trainable.begin() + static_cast<long>(shown)}),
      shown < trainable.size() ? ", ..." : "");
}

}  // namespace

Graph freeze(const Graph& graph, const std::string& patterns) {
  const std::vector<std::string> all = split_text(patterns, ',');
  for (const std::string& pattern : all) check_pattern(graph, pattern);
  Graph frozen = with_frozen(graph, [&](const Parameter& parameter) {
    return std::ranges::any_of(
        all, [&](const std::string& pattern) { return names(pattern, parameter); });
  });
  if (frozen.num_trainable() == 0)
    throw_error<InvalidInput>("[--freeze] {} leaves no weight to train; name fewer", patterns);
  return frozen;
}

}  // namespace tessera
