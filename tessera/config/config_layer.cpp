#include "tessera/config/config_layer.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/config/domain_tables.h"
#include "tessera/config/toml.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"

namespace tessera {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

/// Names of tables, or of a table's keys, for errors.
std::vector<std::string> known_names(const std::string& table) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    const std::string name = table.empty() ? fmt::format("[{}]", key.table) : key.name;
    if ((table.empty() || key.table == table) && (names.empty() || names.back() != name))
      names.push_back(name);
  }
  return names;
}

const ConfigKey& find_key(const TomlEntry& entry, const std::string& file_name) {
  const std::string place = fmt::format("{}:{}:{}:", file_name, entry.key_line, entry.key_column);
  bool table_known = false;
  for (const ConfigKey& key : config_keys()) {
    if (key.table == entry.table && is_called(key, entry.key)) return key;
    table_known = table_known || key.table == entry.table;
  }
  const std::vector<std::string> tables = known_names("");
  if (entry.table.empty())
    throw_error<InvalidInput>("{} {} is in no table; put it under one of {}", place, entry.key,
                              joined(tables));
  if (!table_known)
    throw_error<InvalidInput>("{} the table [{}] is not known{}; known: {}", place, entry.table,
                              did_you_mean(fmt::format("[{}]", entry.table), tables),
                              joined(tables));
  const std::vector<std::string> keys = known_names(entry.table);
  throw_error<InvalidInput>("{} [{}] has no key {}{}; known: {}", place, entry.table, entry.key,
                            did_you_mean(entry.key, keys), joined(keys));
}

/// [2, 3] → "2x3".
std::string sizes_text(const std::vector<TomlScalar>& elements, const std::string& place) {
  std::string text;
  for (const TomlScalar& element : elements) {
    const auto* size = std::get_if<int64_t>(&element);
    if (size == nullptr)
      throw_error<InvalidInput>("{} holds something else than whole numbers; write [2, 3]", place);
    text += fmt::format("{}{}", text.empty() ? "" : "x", *size);
  }
  return text;
}

/// ["2x2", "1x1"] → "2x2,1x1"; and a single grid as sizes_text.
std::string grids_text(const std::vector<TomlScalar>& elements, const std::string& place) {
  std::string text;
  for (const TomlScalar& element : elements) {
    const auto* grid = std::get_if<std::string>(&element);
    if (grid == nullptr) return sizes_text(elements, place);
    text += fmt::format("{}{}", text.empty() ? "" : ",", *grid);
  }
  return text;
}

ConfigValue from_toml(const ConfigKey& key, const TomlValue& value, const std::string& place) {
  const bool is_sizes = key.type == ConfigType::kSizes || key.type == ConfigType::kGrids;
  if (const auto* elements = std::get_if<std::vector<TomlScalar>>(&value)) {
    if (key.type == ConfigType::kGrids) return grids_text(*elements, place);
    if (!is_sizes) throw_error<InvalidInput>("{} is an array; give a single value", place);
    return sizes_text(*elements, place);
  }
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    if (is_sizes) return fmt::format("{}", *whole);
    if (key.type == ConfigType::kReal) return static_cast<double>(*whole);
    return *whole;
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::get<std::string>(value);
}

template <class Number>
Number whole_text_as(const std::string& text, const char* what, const std::string& place) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range)
    throw_error<InvalidInput>("{} {} is out of range", place, text);
  if (error != std::errc() || rest != end)
    throw_error<InvalidInput>("{} \"{}\" is not {}", place, text, what);
  return number;
}

ConfigValue from_text(const ConfigKey& key, const std::string& text, const std::string& place) {
  switch (key.type) {
    case ConfigType::kWhole:
      return whole_text_as<int64_t>(text, "a whole number", place);
    case ConfigType::kReal:
      return whole_text_as<double>(text, "a number", place);
    case ConfigType::kFlag:
      if (text != "true" && text != "false")
        throw_error<InvalidInput>("{} \"{}\" is not true or false", place, text);
      return text == "true";
    case ConfigType::kText:
    case ConfigType::kSizes:
    case ConfigType::kGrids:
      break;
  }
  return text;
}

void check_together(const ConfigLayer& layer) {
  for (const ConfigAssignment& one : layer)
    for (const ConfigAssignment& other : layer) {
      if (&one >= &other) continue;
      const std::vector<std::string>& excluded = one.key->excludes;
      if (one.key == other.key)
        throw_error<InvalidInput>("{} is given twice; give it once", other.place);
      if (std::find(excluded.begin(), excluded.end(), other.key->option) != excluded.end())
        throw_error<InvalidInput>("{} excludes {}; give one of them", other.place, one.place);
    }
}

}  // namespace

ConfigLayer parse_config(std::string_view toml, const std::string& file_name) {
  ConfigLayer layer;
  const std::vector<TomlEntry> entries = parse_toml(toml, file_name);
  for (const TomlEntry& entry : entries) {
    if (is_of_domain(entry)) continue;
    const ConfigKey& key = find_key(entry, file_name);
    const std::string place = fmt::format("{}:{}:{}: [{}] {}", file_name, entry.value_line,
                                          entry.value_column, key.table, key.name);
    ConfigValue value = from_toml(key, entry.value, place);
    check(key, value, place);
    layer.push_back({&key, std::move(value), place});
  }
  for (ConfigAssignment& each : parse_domain_tables(entries, file_name))
    layer.push_back(std::move(each));
  return layer;
}

ConfigLayer read_config_file(const std::string& path) {
  const std::string text = read_text(path, "--config", kMaxConfigBytes);
  try {
    return parse_config(text, path);
  } catch (const InvalidInput& error) {
    throw InvalidInput(cut_short(error.what()));
  }
}

ConfigAssignment config_option(const std::string& option, const std::string& text) {
  const ConfigKey& key = config_key(option);
  const std::string place = fmt::format("[{}]", option);
  ConfigValue value = from_text(key, text, place);
  check(key, value, place);
  return {&key, std::move(value), place};
}

void apply_layer(TrainConfig& config, const ConfigLayer& layer) {
  check_together(layer);
  static const TrainConfig defaults;
  for (const ConfigAssignment& assignment : layer) {
    for (const std::string& option : assignment.key->excludes) {
      const ConfigKey& excluded = config_key(option);
      excluded.set(config, excluded.get(defaults));
    }
    assignment.key->set(config, assignment.value);
  }
}

}  // namespace tessera
