#pragma once
// The numbers that masks hold, as labels: many programs write 0 and 255 for "no" and "yes".
//
// Example:
//   const MaskValues values = parse_mask_values("0:0/255:1", "data");
//   values.label_of(255);   // 1

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

class MaskValues {
 public:
  /// Numbers are labels as they are.
  MaskValues() = default;
  explicit MaskValues(std::map<int64_t, int64_t> labels) : labels_(std::move(labels)) {}
  /// The values become 0, 1, 2, ... in their order.
  static MaskValues in_order(const std::vector<int64_t>& sorted_values);

  bool changes_nothing() const { return labels_.empty(); }
  /// None where the value is not in the list.
  std::optional<int64_t> label_of(int64_t value) const;
  /// The values that have a label: "0, 255".
  std::string legal() const;

 private:
  std::map<int64_t, int64_t> labels_;
};

/// "0:0/128:1/255:1": value:label pairs with '/' between them. Throws InvalidInput with [place].
MaskValues parse_mask_values(const std::string& text, const std::string& place);

}  // namespace tessera
