#include "tests/unit/structure/include_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <sstream>

#include "tessera/base/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// "tessera/ops/conv/linear.h" → "ops"; the umbrella header tessera/tessera.h belongs to no room.
std::string room_of(const std::string& path) {
  const size_t begin = std::string("tessera/").size();
  const size_t end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

std::string complaint(const std::string& file, const std::string& include, const RoomPlan& plan) {
  const std::string room = room_of(file);
  if (!plan.allowed.contains(room)) return fmt::format("{}: the room {} is not listed", file, room);
  const bool is_torch = std::regex_search(include, std::regex("^(ATen|c10|torch)/"));
  if (is_torch && plan.without_torch.contains(room))
    return fmt::format("{}: {} sees no torch, and includes {}", file, room, include);
  if (!include.starts_with("tessera/")) return "";
  const std::string used = room_of(include);
  if (used == room || plan.allowed.at(room).contains(used)) return "";
  return fmt::format("{}: {} may not include {}", file, room, include);
}

}  // namespace

RoomPlan parse_rooms(const std::string& markdown) {
  const size_t begin = markdown.find("```rooms\n");
  if (begin == std::string::npos) throw_error<InvalidInput>("[rooms] the page has no such block");
  std::istringstream block(markdown.substr(begin + 9));
  RoomPlan plan;
  for (std::string line; std::getline(block, line) && line != "```";) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) throw_error<InvalidInput>("[rooms] '{}' has no colon", line);
    std::string room = line.substr(0, colon);
    if (room.ends_with('!')) {
      room.pop_back();
      plan.without_torch.insert(room);
    }
    std::istringstream names(line.substr(colon + 1));
    for (std::string used; names >> used;) {
      if (!plan.allowed.contains(used))
        throw_error<InvalidInput>("[rooms] {} uses {}, which does not stand before it", room, used);
      plan.allowed[room].insert(used);
    }
    plan.allowed.try_emplace(room);
    plan.order.push_back(room);
  }
  return plan;
}

namespace {

/// Calls visit(file, line) for all lines of all sources below root/tessera, and gives what visits
/// gave, sorted, without what is empty.
template <class Visit>
std::vector<std::string> complaints(const std::string& root, Visit&& visit) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / "tessera")) {
    const std::string file = fs::relative(entry.path(), root).generic_string();
    const std::string ending = entry.path().extension().string();
    if ((ending != ".h" && ending != ".cpp" && ending != ".cu") || room_of(file).empty()) continue;
    std::ifstream text(entry.path());
    for (std::string line; std::getline(text, line);)
      if (const std::string wrong = visit(file, line); !wrong.empty()) found.push_back(wrong);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> violations(const std::string& root, const RoomPlan& plan) {
  static const std::regex include(R"(^\s*#include\s+[<"]([^>"]+)[>"])");
  return complaints(root, [&](const std::string& file, const std::string& line) {
    std::smatch match;
    return std::regex_search(line, match, include) ? complaint(file, match[1], plan)
                                                   : std::string();
  });
}

std::vector<std::string> device_code(const std::string& root) {
  const auto has_any = [](const std::string& line, std::initializer_list<const char*> words) {
    return std::ranges::any_of(
        words, [&](const char* word) { return line.find(word) != std::string::npos; });
  };
  return complaints(root, [&](const std::string& file, const std::string& line) {
    const std::string room = room_of(file);
    const bool by_library = file.starts_with("tessera/kernels/aten/");
    const bool names_device =
        (room != "kernels" && has_any(line, {"#include \"tessera/kernels/aten/"})) ||
        ((room != "kernels" || by_library) &&
         has_any(line, {"#include \"tessera/kernels/cpu/", "#include \"tessera/kernels/cuda/"}));
    const bool is_loop =
        (room == "ops" || by_library) && has_any(line, {"data_ptr", "parallel_for", "AT_DISPATCH"});
    // It gives numbers to the host by its contract: an error, a metric.
    const bool may_wait = has_any(file, {"/confusion.cpp"});
    const bool waits = by_library && !may_wait && has_any(line, {".item", "accessor", ".cpu()"});
    return names_device || is_loop || waits ? fmt::format("{}: {}", file, line) : std::string();
  });
}

}  // namespace tessera
