#pragma once
// Small readers and writers of text that many folders need: lists of words, counts with their noun,
// and whole texts as numbers.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The words with `separator` between them.
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The parts between separators: "a+b" is a and b, and the empty text is one empty part.
std::vector<std::string> split_text(std::string_view text, char separator);

/// "1 sample", "3 samples". A plural that is not the singular with an s is given: "axes".
std::string counted(int64_t count, std::string_view singular, std::string_view plural = {});

/// With small letters for the capital ones of ASCII.
std::string lower_case(std::string_view text);

/// The whole text as a number, or nothing. It is written as in C++ and read independent of the
/// locale; blanks, a '+' in front or anything behind the number make it none.
template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace tessera
