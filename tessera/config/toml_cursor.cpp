#include "tessera/config/toml_cursor.h"

namespace tessera {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the UTF-8 character at the start of `text`; 0 where there is none (overlong forms,
/// surrogates and numbers beyond Unicode included).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool beyond = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string without_carriage_returns(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i)
    if (!(text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n')) result += text[i];
  return result;
}

}  // namespace

TomlCursor::TomlCursor(std::string_view text, std::string file_name)
    : file_name_(std::move(file_name)) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, 3) == kByteOrderMark) text.remove_prefix(3);
  text_ = without_carriage_returns(text);
  check_utf8();
}

void TomlCursor::check_utf8() {
  while (!at_end()) {
    const size_t length = utf8_length(std::string_view(text_).substr(next_));
    if (length == 0)
      fail("byte 0x{:02x} is not UTF-8; save the file as UTF-8",
           static_cast<unsigned>(static_cast<unsigned char>(peek())));
    for (size_t i = 0; i < length; ++i) take();
  }
  next_ = 0;
  line_ = column_ = 1;
}

char TomlCursor::take() {
  const char c = peek();
  ++next_;
  if (c == '\n') {
    ++line_;
    column_ = 1;
  } else if (!is_continuation(peek())) {
    ++column_;
  }
  return c;
}

void TomlCursor::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') take();
}

void TomlCursor::skip_comment() {
  if (peek() != '#') return;
  while (!at_end() && peek() != '\n') {
    if (is_control(peek())) fail("{} in a comment; remove it", shown());
    take();
  }
}

void TomlCursor::skip_lines() {
  while (true) {
    skip_blanks();
    skip_comment();
    if (peek() != '\n' || at_end()) return;
    take();
  }
}

void TomlCursor::expect_line_end(const char* what) {
  skip_blanks();
  skip_comment();
  if (at_end()) return;
  if (peek() != '\n') fail("{} after {}; only a comment may follow on the line", shown(), what);
  take();
}

void TomlCursor::fail_at(int line, int column, const std::string& message) const {
  throw_error<InvalidInput>("{}:{}:{}: {}", file_name_, line, column, message);
}

std::string TomlCursor::shown() const {
  if (at_end()) return "the end of the file";
  if (peek() == '\n') return "the end of the line";
  if (is_control(peek()))
    return fmt::format("control character 0x{:02x}",
                       static_cast<unsigned>(static_cast<unsigned char>(peek())));
  size_t length = 1;
  while (is_continuation(peek(length))) ++length;
  return fmt::format("'{}'", text_.substr(next_, length));
}

}  // namespace tessera
