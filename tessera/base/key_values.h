#pragma once
// The options in the name of a data set, "key=value,key=value", read with checks that tell the
// legal keys and ranges.
//
// Example:
//   OptionText given("synthetic", "samples=64", {"samples", "noise"});
//   given.integer("samples", /*otherwise=*/16, /*low=*/1, /*high=*/1000);

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

class OptionText {
 public:
  /// `place` begins error messages. Throws InvalidInput for malformed text and for a key that is
  /// unknown or given twice.
  OptionText(std::string place, const std::string& text, const std::vector<std::string>& known);

  /// The value of a key, or `otherwise` where it is not given. Throw InvalidInput, with the legal
  /// values, where it is no number or outside [low, high].
  int64_t integer(const std::string& key, int64_t otherwise, int64_t low, int64_t high) const;
  double real(const std::string& key, double otherwise, double low, double high) const;
  /// One of `legal`; the first where it is not given.
  std::string choice(const std::string& key, const std::vector<std::string>& legal) const;

 private:
  const std::string place_;
  std::map<std::string, std::string> values_;
};

}  // namespace tessera
