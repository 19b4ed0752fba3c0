#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/config/config_keys.h"

namespace tessera {
namespace {

const char* type_name(ConfigType type) {
  switch (type) {
    case ConfigType::kText:
      return "a text";
    case ConfigType::kSizes:
      return "a list of sizes such as 2x3";
    case ConfigType::kGrids:
      return "a list of sizes such as 2x3, or one for each stage such as 2x3,1x1";
    case ConfigType::kWhole:
      return "a whole number";
    case ConfigType::kReal:
      return "a number";
    case ConfigType::kFlag:
      return "true or false";
  }
  return "";
}

bool has_type(const ConfigValue& value, ConfigType type) {
  switch (type) {
    case ConfigType::kText:
    case ConfigType::kSizes:
    case ConfigType::kGrids:
      return std::holds_alternative<std::string>(value);
    case ConfigType::kWhole:
      return std::holds_alternative<int64_t>(value);
    case ConfigType::kReal:
      return std::holds_alternative<double>(value);
    case ConfigType::kFlag:
      return std::holds_alternative<bool>(value);
  }
  return false;
}

/// "2x3": whole numbers from 1 on, with an x between; or nothing.
bool is_sizes(std::string_view text) {
  bool digit_before = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (!digit && !(text[i] == 'x' && digit_before && i + 1 < text.size())) return false;
    if (text[i] == '0' && !digit_before) return false;
    digit_before = digit;
  }
  return true;
}

/// "2x3,1x1": sizes with commas between.
bool is_grids(std::string_view text) {
  if (text.find(',') == std::string_view::npos) return is_sizes(text);
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    if (end == 0 || !is_sizes(text.substr(0, end))) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
void check_number(const ConfigKey& key, Number number, const std::string& place) {
  if (!key.interval.contains(static_cast<double>(number)))
    throw_error<InvalidInput>("{} {} must be {}", place, number, to_string(key.interval));
}

void check_text(const ConfigKey& key, const std::string& text, const std::string& place) {
  if (key.type == ConfigType::kSizes && !is_sizes(text))
    throw_error<InvalidInput>(
        "{} \"{}\" is not a list of sizes; write whole numbers from 1 on as 2x3", place, text);
  if (key.type == ConfigType::kGrids && !is_grids(text))
    throw_error<InvalidInput>(
        "{} \"{}\" is not a list of sizes; write whole numbers from 1 on as 2x3, or a list for "
        "each "
        "stage as 2x3,1x1",
        place, text);
  if (key.choices.empty() ||
      std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end())
    return;
  throw_error<InvalidInput>("{} \"{}\" is not known; use one of {}{}", place, text,
                            joined(key.choices), did_you_mean(text, key.choices));
}

}  // namespace

bool ConfigInterval::contains(double value) const {
  if (!std::isfinite(value)) return false;
  return (low_end == End::kClosed ? value >= low : value > low) &&
         (high_end == End::kClosed ? value <= high : value < high);
}

std::string to_string(const ConfigInterval& interval) {
  const bool closed_low = interval.low_end == ConfigInterval::End::kClosed;
  if (std::isinf(interval.high))
    return fmt::format("{} {}", closed_low ? "at least" : "above", interval.low);
  return fmt::format("in {}{}, {}{}", closed_low ? '[' : '(', interval.low, interval.high,
                     interval.high_end == ConfigInterval::End::kClosed ? ']' : ')');
}

void check(const ConfigKey& key, const ConfigValue& value, const std::string& place) {
  if (std::holds_alternative<std::monostate>(value)) return;
  if (!has_type(value, key.type))
    throw_error<InvalidInput>("{} is of the wrong type; give {}", place, type_name(key.type));
  if (const auto* whole = std::get_if<int64_t>(&value)) check_number(key, *whole, place);
  if (const auto* real = std::get_if<double>(&value)) check_number(key, *real, place);
  if (const auto* text = std::get_if<std::string>(&value)) check_text(key, *text, place);
}

}  // namespace tessera
