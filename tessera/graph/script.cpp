#include "tessera/graph/script.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

std::string script_call(const std::string& function, const std::vector<std::string>& arguments) {
  return fmt::format("{}({})", function, joined(arguments));
}

std::string script_list(const std::vector<std::string>& items) {
  return fmt::format("[{}]", joined(items));
}

std::string script_list(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  for (int64_t number : numbers) items.push_back(std::to_string(number));
  return script_list(items);
}

std::string script_real(double number) {
  TESSERA_CHECK(std::isfinite(number), "{} has no form in TorchScript", number);
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string script_bool(bool value) { return value ? "True" : "False"; }

std::string script_or_none(const std::vector<std::string>& texts, size_t index) {
  return index < texts.size() ? texts[index] : "None";
}

}  // namespace tessera
