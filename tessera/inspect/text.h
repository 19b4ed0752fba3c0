#pragma once
// Text for people: numbers with units, and names made safe to print. Names come from files that
// others wrote, so they may hold anything.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// 1234567890 → "1.23 GFLOP".
std::string format_flops(double flops);
/// 1234567 → "1.23 M"; below 10,000 all digits.
std::string format_count(double count);

/// Valid UTF-8 without control characters: each byte or character that is not allowed becomes a
/// replacement character.
std::string printable(std::string_view text);
/// Of valid UTF-8.
int64_t num_characters(std::string_view text);
/// Valid UTF-8 with dots in its middle where it is longer than `most` (at least 3) characters.
std::string shortened(std::string_view text, int64_t most);
/// With the characters escaped that mean something in XML, for content and for attributes.
std::string xml_escaped(std::string_view text);

}  // namespace tessera
