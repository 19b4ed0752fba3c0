#pragma once
// The options that users write after a name, "key=value,key=value": those of a model, a loss or a
// data set. One table of keys gives the legal ones, their defaults, and what a list of options
// says; readers state the legal values, and every refusal names them.
//
// Example:
//   const std::vector<KeyInfo> keys{{"delta", "1", "where it becomes linear"}};
//   KeyValues("loss huber", "delta=0.5", keys).real("delta", 0, 10);   // 0.5
//   KeyValues("loss huber", "", keys).real("delta", 0, 10);            // 1

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

struct KeyInfo {
  std::string name;
  std::string default_value = {};  // empty: none
  std::string help = {};           // with the legal values; empty where no list shows the key
};

/// For errors: "legal: base, depth".
std::string legal_keys(const std::vector<KeyInfo>& known);

class KeyValues {
 public:
  /// `place` begins error messages. An empty text gives no value. Throws InvalidInput for malformed
  /// text and for a key that is unknown or given twice.
  KeyValues(std::string place, const std::string& text, const std::vector<KeyInfo>& known);

  /// Whether the key has a value: one that was given, or a default.
  bool has(const std::string& key) const { return !text(key).empty(); }

  /// Whether the value is this word: one beside the numbers that the key takes.
  bool says(const std::string& key, const std::string& word) const { return text(key) == word; }

  /// The value as it was written, or the default.
  const std::string& text(const std::string& key) const;

  /// The given value or the default. Throw InvalidInput, with the legal values, where it is none of
  /// them. Ranges include both ends.
  int64_t integer(const std::string& key, int64_t low, int64_t high) const;
  double real(const std::string& key, double low, double high) const;
  std::string choice(const std::string& key, const std::vector<std::string>& legal) const;
  /// Numbers with '/' between them; empty where the key has no value.
  std::vector<double> reals(const std::string& key, double low, double high) const;
  /// Sizes with 'x' between them; empty where the key has no value.
  std::vector<int64_t> sizes(const std::string& key) const;

 private:
  std::string place_;
  std::map<std::string, std::string> values_;  // of every known key
};

}  // namespace tessera
