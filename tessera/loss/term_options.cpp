#include "tessera/loss/term_options.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"

namespace tessera {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool read_number(const std::string& text, double* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

TermOptions::TermOptions(std::string term, const std::string& text,
                         const std::vector<TermKey>& known)
    : term_(std::move(term)) {
  std::vector<std::string> names;
  for (const TermKey& key : known) {
    names.push_back(key.name);
    values_[key.name] = key.default_value;
  }
  const std::string legal = names.empty() ? "it has none" : "legal: " + joined(names);
  std::map<std::string, std::string> given;
  if (text.empty()) return;
  for (const std::string& option : split_text(text, ',')) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == option.size())
      throw_error<InvalidInput>("[loss {}] '{}' is no option; write key=value; {}", term_, option,
                                legal);
    const std::string key = option.substr(0, equals);
    if (!values_.contains(key))
      throw_error<InvalidInput>("[loss {}] no option is called '{}'; {}", term_, key, legal);
    if (!given.emplace(key, option.substr(equals + 1)).second)
      throw_error<InvalidInput>("[loss {}] option '{}' is given twice", term_, key);
  }
  for (const auto& [key, value] : given) values_[key] = value;
}

int64_t TermOptions::integer(const std::string& key) const {
  int64_t value = 0;
  const char *begin = text(key).data(), *end = begin + text(key).size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end)
    throw_error<InvalidInput>("[loss {}] {}={} must be an integer", term_, key, text(key));
  return value;
}

double TermOptions::real(const std::string& key, double low, double high) const {
  double value = 0;
  if (!read_number(text(key), &value) || !(value >= low && value <= high))
    throw_error<InvalidInput>("[loss {}] {}={} must be a number from {} to {}", term_, key,
                              text(key), low, high);
  return value;
}

std::vector<double> TermOptions::reals(const std::string& key, double low, double high) const {
  std::vector<double> values;
  if (text(key).empty()) return values;
  for (const std::string& part : split_text(text(key), '/')) {
    double value = 0;
    if (!read_number(part, &value) || !(value >= low && value <= high))
      throw_error<InvalidInput>("[loss {}] {}={} must be numbers from {} to {} with '/' between",
                                term_, key, text(key), low, high);
    values.push_back(value);
  }
  return values;
}

std::string TermOptions::choice(const std::string& key,
                                const std::vector<std::string>& legal) const {
  if (std::find(legal.begin(), legal.end(), text(key)) == legal.end())
    throw_error<InvalidInput>("[loss {}] {}={} must be one of: {}", term_, key, text(key),
                              joined(legal));
  return text(key);
}

const std::string& TermOptions::text(const std::string& key) const {
  const auto found = values_.find(key);
  TESSERA_CHECK(found != values_.end(), "loss {} reads option {}, which it did not declare", term_,
                key);
  return found->second;
}

}  // namespace tessera
