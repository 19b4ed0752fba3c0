#include "tessera/simulate/draw_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr char kIdle = '.';

/// How virtual time becomes columns and numbers on the axis.
struct Scale {
  double columns_per_time = 1;
  int columns = 1;
  double shown_per_time = 1;  // what the axis counts: units, or seconds by a power of ten
  const char* unit = "units";
};

Scale scale_of(const Timeline& timeline, int width) {
  Scale scale;
  if (timeline.step_time <= 0) return scale;
  scale.columns_per_time = width / timeline.step_time;
  if (timeline.unit == TimeUnit::kTasks && scale.columns_per_time > 1)
    scale.columns_per_time = std::floor(scale.columns_per_time);
  scale.columns =
      std::max(1, static_cast<int>(std::lround(timeline.step_time * scale.columns_per_time)));
  if (timeline.unit == TimeUnit::kTasks) return scale;
  scale.unit = timeline.step_time >= 1 ? "s" : timeline.step_time >= 1e-3 ? "ms" : "us";
  scale.shown_per_time = timeline.step_time >= 1 ? 1 : timeline.step_time >= 1e-3 ? 1e3 : 1e6;
  return scale;
}

/// The smallest of 1, 2, 5, 10, 20, ... (and their fractions) that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string axis(const Scale& scale) {
  constexpr double kColumnsBetweenTicks = 8;
  const double columns_per_shown = scale.columns_per_time / scale.shown_per_time;
  const double step = round_step(kColumnsBetweenTicks / columns_per_shown);
  std::string line(scale.columns, ' ');
  for (int tick = 0;; ++tick) {
    const std::string label = fmt::format("|{:.6g}", tick * step);
    const size_t column = std::lround(tick * step * columns_per_shown);
    if (column + label.size() > line.size()) return line;
    line.replace(column, label.size(), label);
  }
}

char digit(int micro_batch) { return "0123456789abcdefghijklmnopqrstuvwxyz"[micro_batch % 36]; }

/// A task in so many columns.
std::string draw(const Enter& enter, size_t columns) {
  if (enter.part != Enter::Part::kTask) return std::string(columns, '+');
  const char number = digit(enter.task.micro_batch);
  if (enter.task.kind == TaskKind::kForward) return std::string(columns, number);
  std::string text(columns, enter.task.kind == TaskKind::kBackward ? '<' : '=');
  if (columns > 1) text[1] = number;
  return text;
}

/// The columns whose middles lie in the span.
struct Columns {
  Columns(const TimelineSpan& span, const Scale& scale)
      : begin(first_middle(span.begin * scale.columns_per_time)),
        end(std::min(scale.columns, first_middle(span.end * scale.columns_per_time))) {}
  static int first_middle(double position) {
    return static_cast<int>(std::ceil(position - 0.5 - 1e-9));
  }
  int begin;
  int end;
};

/// Which task fills each column; null: idle.
using Cells = std::vector<const TimelineSpan*>;

std::vector<Cells> fill_cells(const Timeline& timeline, const Scale& scale) {
  std::vector<Cells> lines(timeline.ranks.size(), Cells(scale.columns, nullptr));
  const auto paint = [&](const TimelineSpan& span, const TimelineSpan* task) {
    const Columns columns(span, scale);
    for (int column = columns.begin; column < columns.end; ++column)
      lines[span.rank][column] = task;
  };
  for (const TimelineSpan& task : timeline.tasks) paint(task, &task);
  for (const TimelineSpan& wait : timeline.waits) paint(wait, nullptr);
  return lines;
}

std::string draw(const Cells& cells) {
  std::string line;
  for (size_t begin = 0, end; begin < cells.size(); begin = end) {
    const TimelineSpan* task = cells[begin];
    for (end = begin + 1; end < cells.size() && cells[end] == task;) ++end;
    line += task ? draw(task->enter, end - begin) : std::string(end - begin, kIdle);
  }
  return line;
}

/// What the signs in the drawing mean.
std::string legend(const std::string& drawing) {
  const auto shows = [&](char sign) { return drawing.find(sign) != std::string::npos; };
  return fmt::format("000 forward of micro-batch 0{}{}{}, {} idle",
                     shows('<') ? ", <0< its backward" : "",
                     shows('=') ? ", =0= its weight gradients" : "",
                     shows('+') ? ", + set-up and finish" : "", kIdle);
}

}  // namespace

std::string draw_timeline(const Timeline& timeline, int width) {
  TESSERA_CHECK(width > 0, "a timeline of {} columns", width);
  const Scale scale = scale_of(timeline, width);
  const size_t label_width = fmt::format("rank {} ", timeline.ranks.size() - 1).size();
  std::string text = fmt::format("{:{}}{} {}\n", "", label_width, axis(scale), scale.unit);
  const std::vector<Cells> lines = fill_cells(timeline, scale);
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    const double idle = timeline.step_time > 0 ? timeline.ranks[rank].idle / timeline.step_time : 0;
    text += fmt::format("{:{}}{} {:3.0f}% idle\n", fmt::format("rank {}", rank), label_width,
                        draw(lines[rank]), 100 * idle);
  }
  return fmt::format("{}step {:.4g} {}, {:.1f}% idle\n{}\n", text,
                     timeline.step_time * scale.shown_per_time, scale.unit,
                     100 * timeline.bubble_fraction(), legend(text));
}

}  // namespace tessera
