#include "tessera/base/key_values.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tessera/base/error.h"

namespace tessera {
namespace {

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
  return text;
}

/// The whole text as a number, or nothing.
template <class Number>
std::optional<Number> read_number(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

template <class Number>
Number number_within(const std::string& place, const std::string& key, const std::string& text,
                     Number low, Number high) {
  const std::optional<Number> number = read_number<Number>(text);
  if (!number || !(low <= *number && *number <= high))
    throw_error<InvalidInput>("[{}] {}={}: give a number from {} to {}", place, key, text, low,
                              high);
  return *number;
}

}  // namespace

OptionText::OptionText(std::string place, const std::string& text,
                       const std::vector<std::string>& known)
    : place_(std::move(place)) {
  if (text.empty()) return;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string option = text.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == option.size())
      throw_error<InvalidInput>("[{}] '{}' is no option; write key=value with a key of: {}", place_,
                                option, list(known));
    const std::string key = option.substr(0, equals);
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw_error<InvalidInput>("[{}] unknown option '{}'; known: {}", place_, key, list(known));
    if (!values_.emplace(key, option.substr(equals + 1)).second)
      throw_error<InvalidInput>("[{}] option '{}' is given twice", place_, key);
    begin = end + 1;
  }
}

int64_t OptionText::integer(const std::string& key, int64_t otherwise, int64_t low,
                            int64_t high) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : number_within(place_, key, found->second, low, high);
}

double OptionText::real(const std::string& key, double otherwise, double low, double high) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : number_within(place_, key, found->second, low, high);
}

std::string OptionText::choice(const std::string& key,
                               const std::vector<std::string>& legal) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return legal.front();
  if (std::find(legal.begin(), legal.end(), found->second) == legal.end())
    throw_error<InvalidInput>("[{}] {}={}: give one of: {}", place_, key, found->second,
                              list(legal));
  return found->second;
}

}  // namespace tessera
