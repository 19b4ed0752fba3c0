#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

/// The whole text as a number. Independent of the locale, and nothing may stand around the number.
template <class Number>
bool parse(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

ModelOptions::ModelOptions(std::string model, std::vector<OptionInfo> known,
                           std::map<std::string, std::string> given)
    : model_(std::move(model)) {
  std::vector<std::string> names;
  for (const OptionInfo& option : known) {
    names.push_back(option.name);
    values_[option.name] = option.default_value;
  }
  for (const auto& [name, value] : given) {
    if (!values_.contains(name))
      throw_error<InvalidInput>("[{}] has no option '{}'; legal: {}", model_, name, joined(names));
    values_[name] = value;
  }
}

int64_t ModelOptions::integer(const std::string& name, int64_t low, int64_t high) const {
  int64_t value = 0;
  if (!parse(text(name), value) || value < low || value > high)
    throw_error<InvalidInput>("[{}] option {}={} must be an integer from {} to {}", model_, name,
                              text(name), low, high);
  return value;
}

double ModelOptions::real(const std::string& name, double low, double high) const {
  double value = 0;
  if (!parse(text(name), value) || !(value >= low && value <= high))
    throw_error<InvalidInput>("[{}] option {}={} must be a number from {} to {}", model_, name,
                              text(name), low, high);
  return value;
}

std::string ModelOptions::choice(const std::string& name,
                                 const std::vector<std::string>& legal) const {
  if (std::find(legal.begin(), legal.end(), text(name)) == legal.end())
    throw_error<InvalidInput>("[{}] option {}={} must be one of: {}", model_, name, text(name),
                              joined(legal));
  return text(name);
}

const std::string& ModelOptions::text(const std::string& name) const {
  const auto found = values_.find(name);
  TESSERA_CHECK(found != values_.end(), "[{}] reads option {}, which it did not declare", model_,
                name);
  return found->second;
}

}  // namespace tessera
