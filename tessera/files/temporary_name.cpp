#include "tessera/files/temporary_name.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"

namespace tessera {
namespace {

constexpr size_t kDigits = 16;
constexpr std::string_view kEnding = ".writing";

std::string beginning(const std::string& target) {
  return fmt::format(".{}.", std::filesystem::path(target).filename().string());
}

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_temporary_name(std::string_view name, std::string_view start) {
  return name.size() == start.size() + kDigits + kEnding.size() && name.starts_with(start) &&
         name.ends_with(kEnding) && is_hexadecimal(name.substr(start.size(), kDigits));
}

}  // namespace

std::string new_temporary_name(const std::string& target) {
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits)))
    throw_file_error("find a temporary name for", target, errno);
  const std::string name = fmt::format("{}{:016x}{}", beginning(target), bits, kEnding);
  return (std::filesystem::path(target).parent_path() / name).string();
}

std::vector<std::string> temporary_names_of(const std::string& target) {
  const std::string start = beginning(target);
  const std::filesystem::path folder = parent_folder(target);
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (is_temporary_name(entry->path().filename().string(), start))
      names.push_back(entry->path().string());
  return names;
}

}  // namespace tessera
