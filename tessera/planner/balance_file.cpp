// Stages as people write them into a file.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/planner/balance.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// A node's name, or the beginning of some.
struct Pattern {
  std::string text;  // without the '*'
  bool is_beginning = false;
  int stage = 0;
  bool is_used = false;

  std::string written() const { return is_beginning ? fmt::format("{}*", text) : text; }
  bool fits(const std::string& name) const {
    return is_beginning ? name.starts_with(text) : name == text;
  }
  /// A whole name says more than a beginning of the same length.
  size_t weight() const { return 2 * text.size() + (is_beginning ? 0 : 1); }
};

Pattern parse_pattern(const Json& entry, int stage) {
  if (!entry.is_string() || entry.get<std::string>().empty())
    throw_error<InvalidInput>(
        "[balance] stage {} holds {}; give names of nodes, or beginnings such as \"enc1.*\"", stage,
        entry.dump());
  Pattern pattern;
  pattern.text = entry.get<std::string>();
  pattern.stage = stage;
  pattern.is_beginning = pattern.text.back() == '*';
  if (pattern.is_beginning) pattern.text.pop_back();
  return pattern;
}

Json parse_lists(const std::string& text, int num_stages) {
  Json lists = Json::parse(text, nullptr, false);
  const bool is_list_of_lists =
      lists.is_array() &&
      std::all_of(lists.begin(), lists.end(), [](const Json& list) { return list.is_array(); });
  if (!is_list_of_lists)
    throw_error<InvalidInput>(
        "[balance] this is not a JSON list of one list per stage; write it as "
        "[[\"enc1.*\"], [\"*\"]]");
  if (static_cast<int>(lists.size()) != num_stages)
    throw_error<InvalidInput>("[balance] there are {} lists of nodes for {} stages; give {}",
                              lists.size(), num_stages, num_stages);
  return lists;
}

std::vector<Pattern> parse_patterns(const Json& lists) {
  std::vector<Pattern> patterns;
  for (size_t stage = 0; stage < lists.size(); ++stage)
    for (const Json& entry : lists[stage]) {
      const Pattern pattern = parse_pattern(entry, static_cast<int>(stage));
      for (const Pattern& other : patterns)
        if (other.written() == pattern.written())
          throw_error<InvalidInput>("[balance] {} is in stage {} and in stage {}; write it once",
                                    pattern.written(), other.stage, pattern.stage);
      patterns.push_back(pattern);
    }
  return patterns;
}

/// The stage of the longest pattern that fits; marks all that do.
int stage_of(const std::string& name, std::vector<Pattern>* patterns) {
  const Pattern* longest = nullptr;
  for (Pattern& pattern : *patterns) {
    if (!pattern.fits(name)) continue;
    pattern.is_used = true;
    if (!longest || pattern.weight() > longest->weight()) longest = &pattern;
  }
  if (!longest)
    throw_error<InvalidInput>(
        "[balance] node {} is in no stage; name it, or a beginning of it such as \"*\"", name);
  return longest->stage;
}

void check_all_used(const std::vector<Pattern>& patterns) {
  for (const Pattern& pattern : patterns)
    if (!pattern.is_used)
      throw_error<InvalidInput>(
          "[balance] {} of stage {} fits no node; `tessera inspect` lists their names",
          pattern.written(), pattern.stage);
}

}  // namespace

std::map<std::string, int> balance_from_json(const Graph& graph, int num_stages,
                                             const std::string& text) {
  std::vector<Pattern> patterns = parse_patterns(parse_lists(text, num_stages));
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
      throw_error<InvalidInput>(
          "[balance] stage {} has no nodes: longer names of other stages take them all", stage);
  return stages;
}

}  // namespace tessera
