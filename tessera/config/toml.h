#pragma once
// Reads the part of TOML 1.0 that a configuration needs, strictly: comments, [tables], bare keys,
// basic and literal strings, decimal integers (1_000), floats, booleans, and arrays of these (over
// several lines if need be). Everything else of TOML (dotted or quoted keys, nested tables, inline
// tables, multi-line strings, dates, other bases, inf and nan) is refused by name, never misread.
//
// Errors are InvalidInput and say file, line, column (both from 1, columns in characters):
//   run.toml:3:8: the string does not end; close it with "
//
// Example:
//   for (const TomlEntry& entry : parse_toml("[train]\nsteps = 1_000", "run.toml"))
//     std::get<int64_t>(entry.value);   // entry.table "train", entry.key "steps"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera {

using TomlScalar = std::variant<bool, int64_t, double, std::string>;

using TomlValue = std::variant<bool, int64_t, double, std::string, std::vector<TomlScalar>>;

struct TomlEntry {
  std::string table;  // empty: before the first table
  std::string key;
  TomlValue value;
  int key_line = 0, key_column = 0;
  int value_line = 0, value_column = 0;
};

/// In the order of the file. A key or table given twice is an error.
std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& file_name);

}  // namespace tessera
