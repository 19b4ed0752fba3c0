#include "tessera/config/toml.h"

// Some malformed files, such as "[[[", meet assertions of toml++ right before the code that reports
// them; a user's slip must not end the program.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tessera/base/error.h"

namespace tessera {
namespace {

[[noreturn]] void refuse_toml(const std::string& file_name, const toml::source_region& where,
                              std::string_view message) {
  throw_error<InvalidInput>("{}:{}:{}: {}", file_name, where.begin.line, where.begin.column,
                            message);
}

/// What a node is that cannot be a value of a configuration.
const char* foreign_kind(const toml::node& node) {
  if (node.is_table()) return "a table in a table";
  if (node.is_array_of_tables()) return "an array of tables";
  if (node.is_array()) return "an array in an array";
  return "a date or a time";
}

/// `name` of the entry, for errors.
TomlScalar to_scalar(const toml::node& node, const std::string& name,
                     const std::string& file_name) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* text = node.as_string()) return text->get();
  const auto* real = node.as_floating_point();
  if (real == nullptr)
    refuse_toml(file_name, node.source(),
                fmt::format("{} is {}; values are strings in quotes, numbers, true, false and "
                            "arrays of these",
                            name, foreign_kind(node)));
  if (!std::isfinite(real->get()))
    refuse_toml(file_name, node.source(),
                fmt::format("{} is {}; give a finite number", name, real->get()));
  return real->get();
}

TomlValue to_value(const toml::node& node, const std::string& name, const std::string& file_name) {
  const toml::array* array = node.as_array();
  if (array == nullptr || node.is_array_of_tables())
    return std::visit([](auto&& scalar) -> TomlValue { return scalar; },
                      to_scalar(node, name, file_name));
  std::vector<TomlScalar> elements;
  for (const toml::node& element : *array) elements.push_back(to_scalar(element, name, file_name));
  return elements;
}

TomlEntry to_entry(const std::string& table, const toml::key& key, const toml::node& node,
                   const std::string& file_name) {
  const toml::source_position key_at = key.source().begin, value_at = node.source().begin;
  const std::string name =
      table.empty() ? std::string(key.str()) : fmt::format("[{}] {}", table, key.str());
  return {.table = table,
          .key = std::string(key.str()),
          .value = to_value(node, name, file_name),
          .key_line = static_cast<int>(key_at.line),
          .key_column = static_cast<int>(key_at.column),
          .value_line = static_cast<int>(value_at.line),
          .value_column = static_cast<int>(value_at.column)};
}

toml::table read_toml(std::string_view text, const std::string& file_name) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    refuse_toml(file_name, error.source(), error.description());
  }
}

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& file_name) {
  std::vector<TomlEntry> entries;
  for (const auto& [name, node] : read_toml(text, file_name)) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      entries.push_back(to_entry("", name, node, file_name));
    else
      for (const auto& [key, inner] : *table)
        entries.push_back(to_entry(std::string(name.str()), key, inner, file_name));
  }
  // toml++ sorts by name.
  std::ranges::sort(entries, {}, [](const TomlEntry& entry) {
    return std::tuple(entry.key_line, entry.key_column);
  });
  return entries;
}

}  // namespace tessera
