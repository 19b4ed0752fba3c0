#pragma once
// A TOML 1.0 file as a flat list of entries, each with its place, which is all that a configuration
// needs. toml++ reads the file; what it may hold is decided here: tables and tables in these, with
// strings, integers, finite floats, booleans, and arrays of these. Deeper tables, arrays of tables,
// arrays in arrays, dates, times, inf and nan are refused by name.
//
// Errors are InvalidInput and say file, line, column (both from 1, columns in characters):
//   run.toml:3:8: [train] steps is a date or a time; values are strings in quotes, ...
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
  std::string table;  // "data", "data.source"; empty: before the first table
  std::string key;
  TomlValue value;
  int key_line = 0, key_column = 0;
  int value_line = 0, value_column = 0;
};

/// In the order of the file. A key or table given twice is an error.
std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& file_name);

}  // namespace tessera
