#include "tessera/config/toml_value.h"

#include <cctype>
#include <charconv>

namespace tessera {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(uint32_t code, std::string& text) {
  const auto byte = [&](uint32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

/// The digits behind \u or \U.
void read_code_point(TomlCursor& cursor, int num_digits, std::string& text) {
  std::string digits;
  for (int i = 0; i < num_digits; ++i) {
    if (!std::isxdigit(static_cast<unsigned char>(cursor.peek())))
      cursor.fail("{} in an escape; give {} hexadecimal digits", cursor.shown(), num_digits);
    digits += cursor.take();
  }
  const auto code = static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    cursor.fail("{} is no Unicode character", digits);
  append_utf8(code, text);
}

/// Behind the backslash.
void read_escape(TomlCursor& cursor, std::string& text) {
  static constexpr std::string_view kLetters = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
  const size_t known = cursor.at_end() ? std::string_view::npos : kLetters.find(cursor.peek());
  if (known != std::string_view::npos) {
    cursor.take();
    text += kMeanings[known];
  } else if (cursor.peek() == 'u' || cursor.peek() == 'U') {
    const int num_digits = cursor.take() == 'u' ? 4 : 8;
    read_code_point(cursor, num_digits, text);
  } else {
    cursor.fail("\\ before {}; known escapes: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX",
                cursor.shown());
  }
}

/// "basic", with escapes, or 'literal', without.
std::string read_string(TomlCursor& cursor) {
  if (cursor.starts_with("\"\"\"") || cursor.starts_with("'''"))
    cursor.fail("multi-line strings are not supported; write the string on one line");
  const int line = cursor.line(), column = cursor.column();
  const char quote = cursor.take();
  std::string text;
  while (cursor.peek() != quote) {
    if (cursor.at_end() || cursor.peek() == '\n')
      cursor.fail_at(line, column, fmt::format("the string does not end; close it with {}", quote));
    if (is_control(cursor.peek())) cursor.fail("{} in a string; write an escape", cursor.shown());
    const char c = cursor.take();
    if (c == '\\' && quote == '"')
      read_escape(cursor, text);
    else
      text += c;
  }
  cursor.take();
  return text;
}

/// One or more digits, with single underscores between digits, appended without the underscores.
void read_digits(TomlCursor& cursor, std::string& digits) {
  while (true) {
    if (!is_digit(cursor.peek())) cursor.fail("{} where a digit belongs", cursor.shown());
    while (is_digit(cursor.peek())) digits += cursor.take();
    if (cursor.peek() != '_') return;
    cursor.take();
  }
}

void refuse_leading_zero(const TomlCursor& cursor) {
  if (cursor.peek() == '0' && (is_digit(cursor.peek(1)) || cursor.peek(1) == '_'))
    cursor.fail("the number begins with 0; leave it out");
  if (cursor.peek() == '0' && std::isalpha(static_cast<unsigned char>(cursor.peek(1))) &&
      cursor.peek(1) != 'e' && cursor.peek(1) != 'E')
    cursor.fail("hexadecimal, octal and binary numbers are not supported; write decimals");
}

TomlScalar read_number(TomlCursor& cursor) {
  const int line = cursor.line(), column = cursor.column();
  std::string text;
  if (cursor.peek() == '+' || cursor.peek() == '-') {
    const char sign = cursor.take();
    if (sign == '-') text += sign;
  }
  refuse_leading_zero(cursor);
  bool is_float = false;
  read_digits(cursor, text);
  if (cursor.peek() == '.') {
    is_float = true;
    text += cursor.take();
    read_digits(cursor, text);
  }
  if (cursor.peek() == 'e' || cursor.peek() == 'E') {
    is_float = true;
    text += cursor.take();
    if (cursor.peek() == '+' || cursor.peek() == '-') text += cursor.take();
    read_digits(cursor, text);
  }
  const char* const end = text.data() + text.size();
  double real = 0;
  int64_t whole = 0;
  const std::errc error = is_float ? std::from_chars(text.data(), end, real).ec
                                   : std::from_chars(text.data(), end, whole).ec;
  if (error != std::errc()) cursor.fail_at(line, column, fmt::format("{} is out of range", text));
  if (is_float) return real;
  return whole;
}

/// What comes right behind a scalar: a letter or sign there makes it something else (a date, a
/// word).
void check_scalar_end(const TomlCursor& cursor) {
  static constexpr std::string_view kLegal = " \t\n#,]";
  if (!cursor.at_end() && kLegal.find(cursor.peek()) == std::string_view::npos)
    cursor.fail(
        "{} right behind a value; values are strings in quotes, numbers, true, false and "
        "arrays of these",
        cursor.shown());
}

TomlScalar read_scalar(TomlCursor& cursor) {
  const char c = cursor.peek();
  TomlScalar scalar;
  if (c == '"' || c == '\'') {
    scalar = read_string(cursor);
  } else if (cursor.starts_with("true") || cursor.starts_with("false")) {
    scalar = c == 't';
    for (int i = c == 't' ? 4 : 5; i > 0; --i) cursor.take();
  } else if (is_digit(c) || c == '+' || c == '-') {
    scalar = read_number(cursor);
  } else if (c == '[') {
    cursor.fail("arrays in arrays are not supported");
  } else if (c == '{') {
    cursor.fail("inline tables are not supported; write a [table]");
  } else {
    cursor.fail("{} where a value belongs: a string in quotes, a number, true, false or an array",
                cursor.shown());
  }
  check_scalar_end(cursor);
  return scalar;
}

std::vector<TomlScalar> read_array(TomlCursor& cursor) {
  const int line = cursor.line(), column = cursor.column();
  std::vector<TomlScalar> elements;
  cursor.take();
  while (true) {
    cursor.skip_lines();
    if (cursor.peek() == ']') break;
    if (cursor.at_end()) cursor.fail_at(line, column, "the array does not end; close it with ]");
    elements.push_back(read_scalar(cursor));
    cursor.skip_lines();
    if (cursor.peek() == ']') break;
    if (cursor.at_end()) cursor.fail_at(line, column, "the array does not end; close it with ]");
    if (cursor.peek() != ',') cursor.fail("{} in an array; put a comma between", cursor.shown());
    cursor.take();
  }
  cursor.take();
  return elements;
}

}  // namespace

TomlValue read_toml_value(TomlCursor& cursor) {
  if (cursor.peek() == '[') return read_array(cursor);
  return std::visit([](auto&& scalar) -> TomlValue { return scalar; }, read_scalar(cursor));
}

}  // namespace tessera
