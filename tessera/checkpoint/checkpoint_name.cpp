#include "tessera/checkpoint/checkpoint_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <string_view>

#include "tessera/files/file_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kWriting = ".writing-step-";
constexpr std::string_view kRemoving = ".removing-step-";
constexpr std::string_view kWritingLink = ".writing-best";  // best_link.cpp

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    throw_file_error("read the folder", folder, error.value());
  return names;
}

std::string join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

}  // namespace

std::string to_string(const CheckpointName& name) {
  const std::string text = fmt::format("{}{:06}", kPrefix, name.step);
  return name.revision == 0 ? text : fmt::format("{}.{}", text, name.revision);
}

std::optional<CheckpointName> parse_checkpoint_name(const std::string& text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  CheckpointName name;
  const char* end = text.data() + text.size();
  const auto step = std::from_chars(text.data() + kPrefix.size(), end, name.step);
  if (step.ec != std::errc{}) return std::nullopt;
  if (step.ptr != end) std::from_chars(step.ptr + 1, end, name.revision);
  // One comparison refuses every other spelling: signs, too few or too many zeros, what follows.
  if (name.step < 0 || name.revision < 0 || to_string(name) != text) return std::nullopt;
  return name;
}

std::vector<CheckpointName> scan_checkpoints(const std::string& folder) {
  std::vector<CheckpointName> found;
  for (const std::string& text : names_in(folder))
    if (const auto name = parse_checkpoint_name(text)) found.push_back(*name);
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

std::string writing_path(const std::string& folder, const CheckpointName& name) {
  return join(folder, fmt::format(".writing-{}", to_string(name)));
}

std::string removing_path(const std::string& folder, const CheckpointName& name) {
  return join(folder, fmt::format(".removing-{}", to_string(name)));
}

void remove_leftovers(const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (name.starts_with(kWriting) || name.starts_with(kRemoving) || name == kWritingLink)
      remove_all(join(folder, name));
}

void remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw_file_error("remove", path, error.value());
}

}  // namespace tessera
