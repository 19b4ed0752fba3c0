#include "tessera/import/source_place.h"

#include <fmt/format.h>

#include <optional>
#include <regex>
#include <tuple>
#include <vector>

namespace tessera {
namespace {

struct Position {
  std::string file;
  std::string line;
};

/// PyTorch's own layers and functions, and the code that it wrote into the file.
bool is_torch(const Position& position) {
  return position.file.find("/torch/") != std::string::npos || position.file.starts_with("code/");
}

/// What a range knows: one position, or the whole Python stack, "net.py(12): forward" a line, that
/// a trace leaves. The innermost comes first.
std::vector<Position> positions_of(torch::jit::SourceRange range) {
  // The file holds code of its own; it remembers the user's source that it was made from.
  if (const auto original = range.findSourceRangeThatGenerated()) range = *original;
  std::vector<Position> positions;
  const std::string text = range.str();
  static const std::regex kFrame(R"((\S+\.py)\((\d+)\): )");
  for (std::sregex_iterator match(text.begin(), text.end(), kFrame), end; match != end; ++match)
    positions.push_back({(*match)[1], (*match)[2]});
  const auto at = range.file_line_col();
  if (positions.empty() && at && !std::get<0>(*at).empty())
    positions.push_back({std::get<0>(*at), std::to_string(std::get<1>(*at))});
  return positions;
}

std::optional<Position> user_position(const torch::jit::Node& node) {
  for (const Position& position : positions_of(node.sourceRange()))
    if (!is_torch(position)) return position;
  return std::nullopt;
}

/// The user's line nearest to the node. Inlining a function of PyTorch's keeps no trace of who
/// called it, but what the user does with the result comes after it.
std::optional<Position> user_position_near(const torch::jit::Node& node) {
  for (const torch::jit::Node* at = &node; at; at = at->owningBlock()->owningNode()) {
    const torch::jit::Node* end = at->owningBlock()->return_node();
    for (const torch::jit::Node* next = at; next && next != end; next = next->next())
      if (const std::optional<Position> position = user_position(*next)) return position;
  }
  return std::nullopt;
}

}  // namespace

std::string module_path(const torch::jit::Node& node) {
  std::string path;
  const auto callstack = node.callstack();
  if (!callstack) return path;
  for (const auto& call : (*callstack)->vec()) {
    const auto& instance = std::get<2>(call);
    if (!instance) continue;
    const std::string name = instance->instance_name();
    if (name.empty() || name == "SELF" || name == "INSTANCE_NAME_UNKNOWN") continue;
    path += (path.empty() ? "" : ".") + name;
  }
  return path;
}

std::string source_place(const torch::jit::Node& node) {
  std::vector<torch::jit::SourceRange> frames{node.sourceRange()};
  if (const auto callstack = node.callstack()) {
    const auto calls = (*callstack)->vec();  // the outermost call first
    for (auto call = calls.rbegin(); call != calls.rend(); ++call)
      frames.push_back(std::get<1>(*call));
  }
  std::optional<Position> found;
  for (const torch::jit::SourceRange& frame : frames)
    for (const Position& position : positions_of(frame))
      if (!found || (is_torch(*found) && !is_torch(position))) found = position;
  if (!found || is_torch(*found))
    if (const std::optional<Position> near = user_position_near(node)) found = near;
  std::string place = "an unknown place";
  if (found)
    place =
        fmt::format("{}:{}", found->file.substr(found->file.find_last_of('/') + 1), found->line);
  const std::string path = module_path(node);
  return path.empty() ? place : fmt::format("{} (in {})", place, path);
}

}  // namespace tessera
