#include "tessera/inspect/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace tessera {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

/// Three digits that count: 1.23, 12.3, 123. A number that would round up to 1000 gets the next
/// unit.
std::string with_unit(double number, std::span<const char* const> units) {
  size_t unit = 0;
  while (number >= 999.5 && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  const int digits = unit == 0 ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", number, digits, units[unit]);
}

/// Bytes of the UTF-8 character at the front; 0: it is malformed.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t size = first < 0x80         ? 1
                      : first >> 5 == 0x06 ? 2
                      : first >> 4 == 0x0e ? 3
                      : first >> 3 == 0x1e ? 4
                                           : 0;
  if (size == 0 || size > text.size()) return 0;
  uint32_t code = size == 1 ? first : first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 0x02) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};  // longer than it must be
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || code > 0x10ffff || is_surrogate ? 0 : size;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  const bool is_c1 = first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return first < 0x20 || first == 0x7f || is_c1 || character == "\uFFFE" || character == "\uFFFF";
}

/// Where character number `index` begins.
size_t offset_of(std::string_view text, int64_t index) {
  size_t offset = 0;
  while (index-- > 0) offset += std::max<size_t>(1, character_size(text.substr(offset)));
  return offset;
}

}  // namespace

std::string format_flops(double flops) {
  static constexpr std::array kUnits{" FLOP",  " kFLOP", " MFLOP", " GFLOP",
                                     " TFLOP", " PFLOP", " EFLOP"};
  return with_unit(flops, kUnits);
}

std::string format_count(double count) {
  static constexpr std::array kUnits{"", " k", " M", " G", " T"};
  return count < 10'000 ? fmt::format("{:.0f}", count) : with_unit(count, kUnits);
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, size));
    result += size == 0 || is_control(character) ? kReplacement : character;
    text.remove_prefix(character.size());
  }
  return result;
}

int64_t num_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; });
}

std::string shortened(std::string_view text, int64_t most) {
  const int64_t count = num_characters(text);
  if (count <= most) return std::string(text);
  const int64_t front = (most - 1) / 3, back = most - 1 - front;  // the end says more
  return std::string(text.substr(0, offset_of(text, front))) + "…" +
         std::string(text.substr(offset_of(text, count - back)));
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (character == '&')
      result += "&amp;";
    else if (character == '<')
      result += "&lt;";
    else if (character == '>')
      result += "&gt;";
    else if (character == '"')
      result += "&quot;";
    else if (character == '\'')
      result += "&#39;";
    else
      result += character;
  }
  return result;
}

}  // namespace tessera
