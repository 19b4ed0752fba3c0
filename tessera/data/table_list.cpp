#include "tessera/data/table_list.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/data/listed_rows.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"

namespace tessera {
namespace {

struct TableLine {
  int64_t number = 0;  // in the file, from 1 on
  std::vector<std::string> cells;
};

std::string trimmed(const std::string& cell) {
  const size_t begin = cell.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return cell.substr(begin, cell.find_last_not_of(" \t\r") - begin + 1);
}

/// The one that occurs most in the line of names.
char separator_of(const std::string& text) {
  const std::string_view names(text.data(), std::min(text.find('\n'), text.size()));
  const std::string candidates = ",;\t";
  return *std::ranges::max_element(
      candidates, {}, [&](char candidate) { return std::ranges::count(names, candidate); });
}

/// Splits the text into cells. A cell in quotes may hold separators, line breaks and, doubled,
/// quotes.
class TableText {
 public:
  TableText(const std::string& text, const std::string& path)
      : text_(text), path_(path), separator_(separator_of(text)) {}

  std::vector<TableLine> lines() {
    std::vector<TableLine> lines;
    while (at_ < text_.size()) {
      TableLine line{line_, {}};
      do line.cells.push_back(next_cell());
      while (take(separator_));
      take('\n');
      ++line_;
      if (line.cells.size() > 1 || !line.cells[0].empty()) lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  bool take(char letter) {
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  std::string next_cell() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (take('"')) return quoted_cell();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
    return trimmed(text_.substr(begin, at_ - begin));
  }

  std::string quoted_cell() {
    const int64_t first_line = line_;
    std::string cell;
    while (true) {
      if (at_ >= text_.size())
        throw_error<InvalidInput>("[list] {}:{}: a quote is not closed", path_, first_line);
      const char letter = text_[at_++];
      if (letter == '"' && !take('"')) break;
      if (letter == '\n') ++line_;
      cell += letter;
    }
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
    return cell;
  }

  const std::string& text_;
  const std::string& path_;
  const char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

std::string without_byte_order_mark(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

/// The column of each name; those that nobody knows are there, too.
std::map<std::string, size_t> columns_of(const TableLine& names, const std::string& path) {
  std::map<std::string, size_t> columns;
  std::vector<std::string> found;
  for (size_t i = 0; i < names.cells.size(); ++i) {
    const std::string name = lower_case(names.cells[i]);
    if (!columns.emplace(name, i).second)
      throw_error<InvalidInput>("[list] {} has two columns {}; give each a name of its own", path,
                                excerpt(name));
    found.push_back(name);
  }
  if (!columns.contains("image"))
    throw_error<InvalidInput>(
        "[list] {} has no column image{}; its first line names the columns: image, then mask or "
        "label, split, weight, image2, ...; it is {}",
        path, did_you_mean("image", found), excerpt(joined(found)));
  return columns;
}

}  // namespace

SampleList list_table(const std::string& path) {
  const std::string text = without_byte_order_mark(read_text(path, "list"));
  const std::vector<TableLine> lines = TableText(text, path).lines();
  if (lines.empty()) throw_error<InvalidInput>("[list] {} is empty; give columns and rows", path);
  const std::map<std::string, size_t> columns = columns_of(lines[0], path);
  std::vector<ListedRow> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    const TableLine& line = lines[i];
    if (line.cells.size() != lines[0].cells.size())
      throw_error<InvalidInput>("[list] {}:{}: {} where the first line names {}", path, line.number,
                                counted(std::ssize(line.cells), "cell"), lines[0].cells.size());
    const auto cell = [&](const std::string& name) {
      const auto found = columns.find(name);
      return found == columns.end() ? std::string() : line.cells[found->second];
    };
    ListedRow row{.where = fmt::format("{}:{}", path, line.number),
                  .images = {cell("image")},
                  .mask = cell("mask"),
                  .label = cell("label"),
                  .split = cell("split"),
                  .weight = cell("weight")};
    for (int number = 2; !cell(fmt::format("image{}", number)).empty(); ++number)
      row.images.push_back(cell(fmt::format("image{}", number)));
    rows.push_back(std::move(row));
  }
  return list_rows(path, rows);
}

}  // namespace tessera
