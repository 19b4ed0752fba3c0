#include "tessera/import/source_place.h"

#include <fmt/format.h>

#include <optional>
#include <tuple>
#include <vector>

namespace tessera {
namespace {

struct Position {
  std::string file;
  size_t line = 0;
};

std::optional<Position> position_of(torch::jit::SourceRange range) {
  // The file holds code of its own; it remembers the user's source that it was made from.
  if (const auto original = range.findSourceRangeThatGenerated()) range = *original;
  const auto at = range.file_line_col();
  if (!at) return std::nullopt;
  return Position{std::get<0>(*at), static_cast<size_t>(std::get<1>(*at))};
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
  std::string place = "an unknown place";
  for (const torch::jit::SourceRange& frame : frames) {
    const std::optional<Position> position = position_of(frame);
    if (!position) continue;
    place = fmt::format("{}:{}", position->file.substr(position->file.find_last_of('/') + 1),
                        position->line);
    if (position->file.find("/torch/") == std::string::npos) break;  // the user's own
  }
  const std::string path = module_path(node);
  return path.empty() ? place : fmt::format("{} (in {})", place, path);
}

}  // namespace tessera
