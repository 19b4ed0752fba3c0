#include "tessera/inspect/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/inspect/text.h"

namespace tessera {
namespace {

enum class Align { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kRight;
};

using Row = std::vector<std::string>;

std::string padded(const std::string& text, int64_t width, Align align) {
  const std::string spaces(static_cast<size_t>(width - num_characters(text)), ' ');
  return align == Align::kLeft ? text + spaces : spaces + text;
}

void append_line(const Row& row, const std::vector<Column>& columns,
                 const std::vector<int64_t>& widths, std::string* text) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i)
    line += (i > 0 ? "  " : "") + padded(row[i], widths[i], columns[i].align);
  line.erase(line.find_last_not_of(' ') + 1);
  *text += line + "\n";
}

std::string aligned(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  Row headers;
  std::vector<int64_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    headers.push_back(columns[i].header);
    widths.push_back(num_characters(columns[i].header));
    for (const Row& row : rows) widths[i] = std::max(widths[i], num_characters(row[i]));
  }
  std::string text;
  append_line(headers, columns, widths, &text);
  for (const Row& row : rows) append_line(row, columns, widths, &text);
  return text;
}

double size_of(const OperatorProfile& row, SortBy sort) {
  if (sort == SortBy::kBytes) return static_cast<double>(row.output_bytes);
  if (sort == SortBy::kParameters) return static_cast<double>(row.parameters);
  return row.flops;
}

std::string halo_text(const OperatorProfile& row) {
  const std::string text = to_string(row.halo);
  return row.has_statistics && (text == "0" || text == "-") ? "sums" : text;
}

std::string parameter_text(const OperatorProfile& row) {
  if (row.parameters == 0) return "-";
  const bool is_shared = row.new_parameters < row.parameters;
  return format_count(static_cast<double>(row.parameters)) + (is_shared ? "*" : "");
}

std::string operator_table(const GraphProfile& profile, const TableOptions& options) {
  const std::vector<Column> columns{{"operator", Align::kLeft},
                                    {"kind", Align::kLeft},
                                    {"settings", Align::kLeft},
                                    {"shape"},
                                    {"parameters"},
                                    {"forward"},
                                    {"bytes"},
                                    {"field"},
                                    {"halo"}};
  std::vector<Row> rows;
  for (size_t i : select_operators(profile, options)) {
    const OperatorProfile& row = profile.operators[i];
    const bool is_stored = !row.output_shape.empty();
    rows.push_back({printable(row.name), row.kind, printable(row.settings),
                    is_stored ? to_string(row.output_shape) : "-", parameter_text(row),
                    format_flops(row.flops), is_stored ? format_bytes(row.output_bytes) : "-",
                    to_string(row.field), halo_text(row)});
  }
  std::string text = aligned(columns, rows);
  if (rows.size() < profile.operators.size())
    text += fmt::format("... and {} smaller ones\n", profile.operators.size() - rows.size());
  return text;
}

/// One table for one of the numbers: `read(kind)` gives {total, min, median, max}.
template <class Read>
std::string kind_table(const GraphProfile& profile, const std::string& caption,
                       std::string (*format)(double), Read read) {
  double total = 0;
  for (const KindProfile& kind : profile.kinds) total += read(kind)[0];
  if (total == 0) return {};
  std::vector<Row> rows;
  for (const KindProfile& kind : profile.kinds) {
    const std::array<double, 4> numbers = read(kind);
    if (numbers[3] == 0) continue;
    rows.push_back({kind.kind, std::to_string(kind.count), format(numbers[0]),
                    fmt::format("{:.1f} %", 100 * numbers[0] / total), format(numbers[1]),
                    format(numbers[2]), format(numbers[3])});
  }
  return "\n" + aligned({{caption, Align::kLeft},
                         {"count"},
                         {"total"},
                         {"share"},
                         {"min"},
                         {"median"},
                         {"max"}},
                        rows);
}

template <class Number>
std::array<double, 4> numbers_of(Number total, const Spread<Number>& spread) {
  return {static_cast<double>(total), static_cast<double>(spread.min), spread.median,
          static_cast<double>(spread.max)};
}

std::string kind_tables(const GraphProfile& profile) {
  using Kind = KindProfile;
  return kind_table(profile, "forward, by kind", format_flops,
                    [](const Kind& k) { return numbers_of(k.total_flops, k.flops); }) +
         kind_table(
             profile, "outputs, by kind",
             [](double bytes) { return format_bytes(std::llround(bytes)); },
             [](const Kind& k) { return numbers_of(k.total_output_bytes, k.output_bytes); }) +
         kind_table(profile, "parameters, by kind", format_count,
                    [](const Kind& k) { return numbers_of(k.total_parameters, k.parameters); });
}

std::string totals(const GraphProfile& profile) {
  const auto count = [](int64_t n) { return format_count(static_cast<double>(n)); };
  std::string text = fmt::format(
      "\n{}, {} forward, {} of outputs\n{} parameters ({}), {} of them trainable",
      counted(std::ssize(profile.operators), "operator"), format_flops(profile.flops),
      format_bytes(profile.output_bytes), count(profile.parameters),
      format_bytes(profile.parameter_bytes),
      profile.trainable_parameters == profile.parameters ? "all"
                                                         : count(profile.trainable_parameters));
  if (profile.buffer_bytes > 0)
    text += fmt::format("; running statistics {}", format_bytes(profile.buffer_bytes));
  return text + "\n";
}

/// Explains only what is there.
std::string notes(const GraphProfile& profile) {
  std::string text =
      "\nfield: pixels of the image that the middle of the output sees"
      "\nhalo: pixels that a half of the output reads beyond its half of the input\n";
  const auto any = [&](auto holds) { return std::ranges::any_of(profile.operators, holds); };
  if (any([](const OperatorProfile& row) { return row.has_statistics; }))
    text += "sums: no halo, but sums over the whole image\n";
  if (any([](const OperatorProfile& row) { return row.new_parameters < row.parameters; }))
    text += "*: shared with an earlier operator, counted once in totals\n";
  return text;
}

std::string axis_text(const HaloAxis& axis) {
  if (axis.whole) return "all";
  if (axis.low == axis.high) return std::to_string(axis.low);
  return fmt::format("-{}/+{}", axis.low, axis.high);
}

}  // namespace

std::vector<size_t> select_operators(const GraphProfile& profile, const TableOptions& options) {
  std::vector<size_t> order(profile.operators.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t i) { return size_of(profile.operators[i], options.sort); };
  const bool is_cut =
      options.max_operators > 0 && options.max_operators < static_cast<int64_t>(order.size());
  if (is_cut || options.sort != SortBy::kOrder)
    std::ranges::stable_sort(order, std::greater<>(), size);
  if (is_cut) order.resize(static_cast<size_t>(options.max_operators));
  if (options.sort == SortBy::kOrder) std::ranges::sort(order);
  return order;
}

std::string to_table(const GraphProfile& profile, const TableOptions& options) {
  return operator_table(profile, options) + kind_tables(profile) + totals(profile) + notes(profile);
}

std::string to_string(const ReceptiveField& field) {
  std::string text;
  bool is_whole = true;
  for (const FieldAxis& axis : field.axes) {
    is_whole = is_whole && axis.whole();
    const std::string pixels =
        axis.whole() ? "all" : fmt::format("{}{}", axis.at_border() ? "≥" : "", axis.pixels());
    text += (text.empty() ? "" : "x") + pixels;
  }
  return field.axes.empty() ? "-" : is_whole ? "all" : text;
}

std::string to_string(const std::vector<HaloAxis>& halo) {
  std::vector<std::string> texts;
  for (const HaloAxis& axis : halo) texts.push_back(axis_text(axis));
  if (texts.empty()) return "-";
  if (std::ranges::count(texts, texts[0]) == static_cast<int64_t>(texts.size())) return texts[0];
  std::string text = texts[0];
  for (size_t i = 1; i < texts.size(); ++i) text += " x " + texts[i];
  return text;
}

}  // namespace tessera
