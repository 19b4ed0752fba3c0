#include "tessera/base/key_values.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// The text as a number of the range, or nothing.
template <class Number>
std::optional<Number> number_within(const std::string& text, Number low, Number high) {
  const std::optional<Number> number = read_number<Number>(text);
  const bool is_legal = number && low <= *number && *number <= high;  // NaN is not
  return is_legal ? number : std::nullopt;
}

std::vector<std::string> names_of(const std::vector<KeyInfo>& known) {
  std::vector<std::string> names;
  for (const KeyInfo& key : known) names.push_back(key.name);
  return names;
}

}  // namespace

std::string legal_keys(const std::vector<KeyInfo>& known) {
  const std::vector<std::string> names = names_of(known);
  return names.empty() ? "it takes none" : "legal: " + joined(names);
}

KeyValues::KeyValues(std::string place, const std::string& text, const std::vector<KeyInfo>& known)
    : place_(std::move(place)) {
  for (const KeyInfo& key : known) values_[key.name] = key.default_value;
  if (text.empty()) return;
  std::set<std::string> given;
  for (const std::string& option : split_text(text, ',')) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == option.size())
      throw_error<InvalidInput>("[{}] '{}' is not an option; write key=value; {}", place_, option,
                                legal_keys(known));
    const std::string key = option.substr(0, equals);
    if (!values_.contains(key))
      throw_error<InvalidInput>("[{}] has no option '{}'{}; {}", place_, key,
                                did_you_mean(key, names_of(known)), legal_keys(known));
    if (!given.insert(key).second)
      throw_error<InvalidInput>("[{}] option '{}' is given twice; give it once", place_, key);
    values_[key] = option.substr(equals + 1);
  }
}

int64_t KeyValues::integer(const std::string& key, int64_t low, int64_t high) const {
  const std::optional<int64_t> number = number_within(text(key), low, high);
  if (!number)
    throw_error<InvalidInput>("[{}] option {}={} must be an integer from {} to {}", place_, key,
                              text(key), low, high);
  return *number;
}

double KeyValues::real(const std::string& key, double low, double high) const {
  const std::optional<double> number = number_within(text(key), low, high);
  if (!number)
    throw_error<InvalidInput>("[{}] option {}={} must be a number from {} to {}", place_, key,
                              text(key), low, high);
  return *number;
}

std::string KeyValues::choice(const std::string& key, const std::vector<std::string>& legal) const {
  if (std::find(legal.begin(), legal.end(), text(key)) == legal.end())
    throw_error<InvalidInput>("[{}] option {}={} must be one of: {}{}", place_, key, text(key),
                              joined(legal), did_you_mean(text(key), legal));
  return text(key);
}

std::vector<double> KeyValues::reals(const std::string& key, double low, double high) const {
  std::vector<double> numbers;
  if (!has(key)) return numbers;
  for (const std::string& part : split_text(text(key), '/')) {
    const std::optional<double> number = number_within(part, low, high);
    if (!number)
      throw_error<InvalidInput>("[{}] option {}={} must be numbers from {} to {} with '/' between",
                                place_, key, text(key), low, high);
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<int64_t> KeyValues::sizes(const std::string& key) const {
  if (!has(key)) return {};
  return parse_sizes(text(key), fmt::format("{} {}", place_, key));
}

const std::string& KeyValues::text(const std::string& key) const {
  const auto found = values_.find(key);
  TESSERA_CHECK(found != values_.end(), "[{}] reads option {}, which is not in its table", place_,
                key);
  return found->second;
}

}  // namespace tessera
