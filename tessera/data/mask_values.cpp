#include "tessera/data/mask_values.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

MaskValues MaskValues::in_order(const std::vector<int64_t>& sorted_values) {
  std::map<int64_t, int64_t> labels;
  for (int64_t value : sorted_values) labels.emplace(value, std::ssize(labels));
  return MaskValues(std::move(labels));
}

std::optional<int64_t> MaskValues::label_of(int64_t value) const {
  if (labels_.empty()) return value;
  const auto found = labels_.find(value);
  return found == labels_.end() ? std::nullopt : std::optional(found->second);
}

std::string MaskValues::legal() const {
  std::vector<std::string> values;
  for (const auto& [value, label] : labels_) values.push_back(std::to_string(value));
  return joined(values);
}

MaskValues parse_mask_values(const std::string& text, const std::string& place) {
  std::map<int64_t, int64_t> labels;
  for (const std::string& pair : split_text(text, '/')) {
    const size_t colon = std::min(pair.find(':'), pair.size());
    const auto value = read_number<int64_t>(pair.substr(0, colon));
    const auto label = read_number<int64_t>(colon < pair.size() ? pair.substr(colon + 1) : "");
    if (!value || !label || *label < 0)
      throw_error<InvalidInput>(
          "[{}] option values={} must be value:label pairs with '/' between, such as "
          "values=0:0/255:1, or auto",
          place, text);
    if (!labels.emplace(*value, *label).second)
      throw_error<InvalidInput>("[{}] option values={} has the value {} twice; give it one label",
                                place, text, *value);
  }
  return MaskValues(std::move(labels));
}

}  // namespace tessera
