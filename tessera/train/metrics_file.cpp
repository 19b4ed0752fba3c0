#include "tessera/train/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/train/run_folder.h"

namespace tessera {
namespace {

constexpr uint64_t kMaxMetricsBytes = 1 << 30;  // ten million rows

std::string header(const std::vector<std::string>& columns) {
  std::string line = "step";
  for (const std::string& column : columns) {
    line += ',';
    line += column;
  }
  return line;
}

std::string number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

[[noreturn]] void refuse_row(const std::string& path, int line, const std::string& row,
                             const std::string& reason) {
  throw_error<InvalidInput>("[metrics] {}:{}: {} {}; remove the file or the row", path, line,
                            excerpt(row), reason);
}

int64_t step_of(const std::string& row, const std::string& path, int line) {
  int64_t step = 0;
  const char* const end = row.data() + row.size();
  const auto [rest, error] = std::from_chars(row.data(), end, step);
  if (error != std::errc() || (rest != end && *rest != ','))
    refuse_row(path, line, row, "does not start with a step");
  return step;
}

int64_t num_cells(const std::string& row) { return 1 + std::count(row.begin(), row.end(), ','); }

/// The whole rows of `text` up to the step, under the header `head`. A file that no run could have
/// written is refused: what it lost cannot be told.
std::string keep_rows(const std::string& text, const std::string& head, int64_t last_step,
                      const std::string& path) {
  std::string kept = head + "\n";
  int line = 1;
  int64_t step_before = 0;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1, ++line) {
    const std::string row = text.substr(begin, end - begin);
    if (line == 1 && row != head)
      throw_error<InvalidInput>(
          "[metrics] {} has the columns {}, this run writes {}: an earlier version wrote others, "
          "and "
          "so does other data; move the file away, and the run goes on in a new one",
          path, excerpt(row), head);
    if (line == 1) continue;
    const int64_t step = step_of(row, path, line);
    if (num_cells(row) != num_cells(head))
      refuse_row(path, line, row,
                 fmt::format("has {} cells, the header has {}", num_cells(row), num_cells(head)));
    if (step <= step_before)
      refuse_row(path, line, row, fmt::format("comes after step {}", step_before));
    step_before = step;
    if (step <= last_step) kept += row + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, const std::vector<std::string>& columns,
                         std::optional<int64_t> resumed_at)
    : num_columns_(columns.size()) {
  const std::string head = header(columns);
  std::string kept = head + "\n";
  std::error_code unreadable;  // counts as absent: writing will say why
  const auto status = std::filesystem::symlink_status(path, unreadable);
  if (resumed_at && std::filesystem::exists(status))
    kept = keep_rows(read_text(path, "metrics", kMaxMetricsBytes), head, *resumed_at, path);
  write_in_run([&] {
    file_.emplace(path);
    file_->file().append(kept);
    file_->commit();
  });
}

void MetricsFile::append(int64_t step, const std::vector<std::optional<double>>& values) {
  TESSERA_CHECK(values.size() == num_columns_, "{} values for {} columns", values.size(),
                num_columns_);
  std::string row = fmt::format("{}", step);
  for (const std::optional<double>& value : values) {
    row += ',';
    if (value) row += number(*value);
  }
  row += '\n';
  write_in_run([&] { file_->file().append(row); });
}

void MetricsFile::sync() {
  write_in_run([&] { file_->file().sync(); });
}

}  // namespace tessera
