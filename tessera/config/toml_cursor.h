#pragma once
// A position in a text, with its line and column, for the TOML reader: looks at the next character,
// takes it, and throws errors that say where.

#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

class TomlCursor {
 public:
  /// Refuses what is not UTF-8. A byte order mark and CR before LF are not seen by the reader.
  TomlCursor(std::string_view text, std::string file_name);

  bool at_end() const { return next_ >= text_.size(); }
  /// The next character (byte), 0 at the end.
  char peek(size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }
  bool starts_with(std::string_view prefix) const {
    return std::string_view(text_).substr(next_).substr(0, prefix.size()) == prefix;
  }
  char take();

  int line() const { return line_; }
  int column() const { return column_; }

  void skip_blanks();
  /// A comment, where there is one, up to its line's end. Refuses control characters.
  void skip_comment();
  /// Blanks, comments and line ends.
  void skip_lines();
  /// Blanks and a comment; then the line or the text must end. `what` went before it.
  void expect_line_end(const char* what);

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_at(line_, column_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_at(int line, int column, const std::string& message) const;
  /// The next character as an error shows it.
  std::string shown() const;

 private:
  void check_utf8();

  std::string text_;
  std::string file_name_;
  size_t next_ = 0;
  int line_ = 1;
  int column_ = 1;
};

/// Below space but for the tab, and DEL: TOML allows them nowhere.
inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace tessera
