#include "tessera/config/toml.h"

#include <map>

#include "tessera/config/toml_cursor.h"
#include "tessera/config/toml_value.h"

namespace tessera {
namespace {

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file_name) : cursor_(text, file_name) {}

  std::vector<TomlEntry> read() {
    for (cursor_.skip_lines(); !cursor_.at_end(); cursor_.skip_lines()) {
      if (cursor_.peek() == '[')
        read_table();
      else
        read_entry();
    }
    return std::move(entries_);
  }

 private:
  std::string read_key() {
    if (cursor_.peek() == '"' || cursor_.peek() == '\'')
      cursor_.fail("quoted keys are not supported; write the key without quotes");
    std::string key;
    while (is_key_character(cursor_.peek())) key += cursor_.take();
    if (key.empty())
      cursor_.fail("{} where a key belongs; keys are letters, digits, _ and -", cursor_.shown());
    cursor_.skip_blanks();
    if (cursor_.peek() == '.')
      cursor_.fail("dotted keys are not supported; write a [table], then the key");
    return key;
  }

  /// Remembers that `name` was given here, once.
  void claim(const std::string& name, int line, int column) {
    const auto [first, fresh] = claimed_.emplace(name, line);
    if (!fresh)
      cursor_.fail_at(
          line, column,
          fmt::format("{} is given twice, first in line {}; remove one", name, first->second));
  }

  void read_table() {
    const int line = cursor_.line(), column = cursor_.column();
    cursor_.take();
    if (cursor_.peek() == '[') cursor_.fail("arrays of tables are not supported");
    cursor_.skip_blanks();
    table_ = read_key();
    if (cursor_.peek() != ']')
      cursor_.fail("{} in a table's name; close it with ]", cursor_.shown());
    cursor_.take();
    claim(fmt::format("[{}]", table_), line, column);
    cursor_.expect_line_end("a table's name");
  }

  void read_entry() {
    TomlEntry entry;
    entry.key_line = cursor_.line();
    entry.key_column = cursor_.column();
    entry.table = table_;
    entry.key = read_key();
    if (cursor_.peek() != '=')
      cursor_.fail("{} after the key {}; write {} = value", cursor_.shown(), entry.key, entry.key);
    cursor_.take();
    cursor_.skip_blanks();
    claim(fmt::format("[{}] {}", table_, entry.key), entry.key_line, entry.key_column);
    entry.value_line = cursor_.line();
    entry.value_column = cursor_.column();
    entry.value = read_toml_value(cursor_);
    cursor_.expect_line_end("a value");
    entries_.push_back(std::move(entry));
  }

  TomlCursor cursor_;
  std::string table_;
  std::map<std::string, int> claimed_;  // tables and keys, and their lines
  std::vector<TomlEntry> entries_;
};

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& file_name) {
  return Reader(text, file_name).read();
}

}  // namespace tessera
