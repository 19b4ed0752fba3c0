#include "tessera/train/metrics_file.h"

#include <charconv>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/atomic_file.h"
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

int64_t step_of(const std::string& row, const std::string& path, int line) {
  int64_t step = 0;
  const char* const end = row.data() + row.size();
  const auto [rest, error] = std::from_chars(row.data(), end, step);
  if (error != std::errc() || (rest != end && *rest != ','))
    throw_error<InvalidInput>(
        "[metrics] {}:{}: {} does not start with a step; remove the file or the row", path, line,
        excerpt(row));
  return step;
}

/// The whole rows of `text` up to the step, under the header `head`.
std::string keep_rows(const std::string& text, const std::string& head, int64_t last_step,
                      const std::string& path) {
  std::string kept = head + "\n";
  int line = 1;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1, ++line) {
    const std::string row = text.substr(begin, end - begin);
    if (line == 1 && row != head)
      throw_error<InvalidInput>(
          "[metrics] {} has the columns {}, this run writes {}; give another run folder, or remove "
          "the file",
          path, excerpt(row), head);
    if (line > 1 && step_of(row, path, line) <= last_step) kept += row + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, const std::vector<std::string>& columns,
                         std::optional<int64_t> resumed_at)
    : num_columns_(columns.size()) {
  const std::string head = header(columns);
  std::string text, kept = head + "\n";
  std::error_code unreadable;  // counts as absent: writing will say why
  const auto status = std::filesystem::symlink_status(path, unreadable);
  if (resumed_at && std::filesystem::exists(status)) {
    text = read_text(path, "metrics", kMaxMetricsBytes);
    kept = keep_rows(text, head, *resumed_at, path);
  }
  write_in_run([&] {
    if (kept != text) write_file_atomically(path, kept);
    file_.emplace(OutputFile::append_to(path));
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
  write_in_run([&] { file_->append(row); });
}

void MetricsFile::sync() {
  write_in_run([&] { file_->sync(); });
}

}  // namespace tessera
