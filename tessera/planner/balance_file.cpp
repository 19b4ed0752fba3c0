// Stages as people write them into a file.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/planner/balance.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// A node's name, or the beginning of some and a '*'.
struct Pattern {
  int stage = 0;
  bool is_used = false;
};
using Patterns = std::map<std::string, Pattern>;  // by the text that is written

Json parse_lists(const std::string& text, int num_stages) {
  Json lists = parse_json(text);
  const bool is_list_of_lists =
      lists.is_array() &&
      std::all_of(lists.begin(), lists.end(), [](const Json& list) { return list.is_array(); });
  if (!is_list_of_lists)
    throw_error<InvalidInput>(
        "it is not a list of one list per stage; write it as "
        "[[\"enc1.*\"], [\"*\"]]");
  if (static_cast<int>(lists.size()) != num_stages)
    throw_error<InvalidInput>("{} of nodes for {}; give {}", counted(std::ssize(lists), "list"),
                              counted(num_stages, "stage"), num_stages);
  return lists;
}

Patterns parse_patterns(const Json& lists) {
  Patterns patterns;
  for (size_t stage = 0; stage < lists.size(); ++stage)
    for (const Json& entry : lists[stage]) {
      if (!entry.is_string() || entry.get_ref<const std::string&>().empty())
        throw_error<InvalidInput>(
            "stage {} holds {}; give names of nodes, or beginnings such as \"enc1.*\"", stage,
            excerpt(entry));
      const auto [known, is_new] =
          patterns.try_emplace(entry.get<std::string>(), Pattern{static_cast<int>(stage)});
      if (!is_new)
        throw_error<InvalidInput>("{} is in stage {} and in stage {}; write it once",
                                  excerpt(known->first), known->second.stage, stage);
    }
  return patterns;
}

/// The stage of the longest pattern that fits, a whole name being the longest; marks all that do.
int stage_of(const std::string& name, Patterns* patterns) {
  const Pattern* longest = nullptr;
  const auto look_up = [&](const std::string& written) {
    const auto found = patterns->find(written);
    if (found == patterns->end()) return;
    found->second.is_used = true;
    if (!longest) longest = &found->second;
  };
  if (!name.ends_with('*')) look_up(name);
  for (size_t length = name.size() + 1; length-- > 0;) look_up(name.substr(0, length) + '*');
  if (!longest)
    throw_error<InvalidInput>("node {} is in no stage; name it, or a beginning of it such as \"*\"",
                              name);
  return longest->stage;
}

void check_all_used(const Patterns& patterns) {
  for (const auto& [written, pattern] : patterns)
    if (!pattern.is_used)
      throw_error<InvalidInput>("{} of stage {} fits no node; `tessera inspect` lists their names",
                                excerpt(written), pattern.stage);
}

std::map<std::string, int> stages_in(const Graph& graph, int num_stages, const std::string& text) {
  Patterns patterns = parse_patterns(parse_lists(text, num_stages));
  std::map<std::string, int> stages;
  std::vector<int> num_nodes(num_stages, 0);
  for (const Node& node : graph.nodes()) {
    const int stage = stage_of(node.name, &patterns);
    stages[node.name] = stage;
    ++num_nodes[stage];
  }
  check_all_used(patterns);
  for (int stage = 0; stage < num_stages; ++stage)
    if (num_nodes[stage] == 0)
      throw_error<InvalidInput>("stage {} has no nodes: longer names of other stages take them all",
                                stage);
  return stages;
}

}  // namespace

std::map<std::string, int> balance_from_json(const Graph& graph, int num_stages,
                                             const std::string& text,
                                             const std::string& file_name) {
  try {
    return stages_in(graph, num_stages, text);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[balance] {}: {}", file_name, cut_short(error.what()));
  }
}

std::map<std::string, int> read_balance(const Graph& graph, int num_stages,
                                        const std::string& path) {
  return balance_from_json(graph, num_stages, read_text(path, "--balance"), path);
}

}  // namespace tessera
