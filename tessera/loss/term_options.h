#pragma once
// The options of one loss as a user wrote them, "key=value,key=value", read with checks that name
// the legal keys and values.
//
// Example:
//   TermOptions given("huber", "delta=0.5", {{"delta", "1", "..."}});
//   given.real("delta", 0, 10);   // 0.5

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

struct TermKey {
  std::string name;
  std::string default_value;  // empty: nothing
  std::string help;           // with the legal values
};

class TermOptions {
 public:
  /// Throws InvalidInput for malformed text and for a key that is unknown or given twice.
  TermOptions(std::string term, const std::string& text, const std::vector<TermKey>& known);

  /// Throw InvalidInput, with the legal values, where the value is not one of them.
  int64_t integer(const std::string& key) const;
  double real(const std::string& key, double low, double high) const;
  /// Numbers separated by '/'; none where the value is empty.
  std::vector<double> reals(const std::string& key, double low, double high) const;
  std::string choice(const std::string& key, const std::vector<std::string>& legal) const;

 private:
  const std::string& text(const std::string& key) const;

  std::string term_;
  std::map<std::string, std::string> values_;
};

/// The words with commas between them.
std::string joined(const std::vector<std::string>& words);

/// The parts between separators: "a+b" is a and b, and the empty text is one empty part.
std::vector<std::string> split_text(const std::string& text, char separator);

/// Whether the whole text is a number, written as in C++ and independent of the locale.
bool read_number(const std::string& text, double* number);

}  // namespace tessera
