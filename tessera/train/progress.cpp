#include "tessera/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

namespace tessera {
namespace {

constexpr size_t kWindow = 32;  // steps that speed and ETA look back

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int stderr_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressStyle progress_style(int rank) {
  if (rank != 0) return ProgressStyle::kSilent;
  const char* terminal = std::getenv("TERM");
  const bool plain = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) && !plain ? ProgressStyle::kTerminal : ProgressStyle::kLines;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const int64_t all = std::llround(seconds);
  const int64_t days = all / 86400, hours = all / 3600 % 24, minutes = all / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, all % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

Progress::Progress(const ProgressOptions& options) : options_(options) {
  if (options_.stream == nullptr) options_.stream = &std::cerr;
  if (!options_.seconds) options_.seconds = steady_seconds;
  if (!options_.columns) options_.columns = stderr_columns;
  last_shown_ = options_.seconds();
  marks_.push_back({last_shown_, options_.first_step, 0});
}

void Progress::show(const ProgressUpdate& update) {
  if (options_.style == ProgressStyle::kSilent) return;
  const double now = options_.seconds();
  remember(now, update);
  const bool terminal = options_.style == ProgressStyle::kTerminal;
  const double interval = terminal ? options_.redraw_seconds : options_.line_seconds;
  // The first step tells that all is well, the last one how it ended.
  const bool always = !shown_ || update.step >= options_.total_steps;
  if (!always && now - last_shown_ < interval) return;
  last_shown_ = now;
  shown_ = true;
  if (terminal)
    draw(update);
  else
    *options_.stream << text(update) << '\n' << std::flush;
}

void Progress::say(std::string_view message) {
  if (options_.style == ProgressStyle::kSilent) return;
  if (line_open_) *options_.stream << "\r\x1b[K";
  line_open_ = false;
  *options_.stream << message << '\n' << std::flush;
}

void Progress::finish() {
  if (line_open_) *options_.stream << '\n' << std::flush;
  line_open_ = false;
}

void Progress::remember(double now, const ProgressUpdate& update) {
  marks_.push_back({now, update.step, marks_.back().amount + update.amount});
  if (marks_.size() > kWindow + 1) marks_.pop_front();
}

std::string Progress::speed() const {
  const double seconds = marks_.back().seconds - marks_.front().seconds;
  const auto amount = static_cast<double>(marks_.back().amount - marks_.front().amount);
  const bool images = options_.unit == ProgressUnit::kImages;
  if (seconds <= 0) return images ? "? images/s" : "? px/s";
  double rate = amount / seconds;
  if (images) return fmt::format("{:.{}f} images/s", rate, rate < 100 ? 1 : 0);
  static const char* const units[] = {"px/s", "kpx/s", "Mpx/s", "Gpx/s", "Tpx/s"};
  int unit = 0;
  while (rate >= 1000 && unit < 4) {
    rate /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", rate, rate < 100 ? 1 : 0, units[unit]);
}

std::string Progress::remaining(int64_t step) const {
  const double seconds = marks_.back().seconds - marks_.front().seconds;
  const auto steps = static_cast<double>(marks_.back().step - marks_.front().step);
  if (steps <= 0) return "?";
  const auto left = static_cast<double>(std::max<int64_t>(0, options_.total_steps - step));
  return format_duration(left * seconds / steps);
}

std::string Progress::text(const ProgressUpdate& update) const {
  std::string residual = update.residual ? fmt::format("  residual {:.1e}", *update.residual) : "";
  if (update.gradient_residual) residual += fmt::format("/{:.1e}", *update.gradient_residual);
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}{}  lr {:.2e}  {}  ETA {}", update.epoch,
                     options_.num_epochs, update.step, options_.total_steps, update.loss, residual,
                     update.learning_rate, speed(), remaining(update.step));
}

/// In at most `room` columns; empty where that is too little for a bar.
std::string Progress::bar(const ProgressUpdate& update, size_t room) const {
  constexpr size_t kFrame = 10;  // two spaces, brackets, and "  100%"
  constexpr size_t kLeast = 5, kMost = 30;
  if (room < kFrame + kLeast || options_.total_steps < 1) return "";
  const size_t width = std::min(room - kFrame, kMost);
  const double fraction = std::clamp(
      static_cast<double>(update.step) / static_cast<double>(options_.total_steps), 0.0, 1.0);
  const size_t done = static_cast<size_t>(fraction * static_cast<double>(width));
  std::string cells = std::string(done, '#') + std::string(width - done, '.');
  if (done < width) cells[done] = '>';
  return fmt::format("  [{}]  {:3}%", cells, static_cast<int>(fraction * 100));
}

void Progress::draw(const ProgressUpdate& update) {
  // A line that fills the last column wraps, and redrawing would then climb down the screen.
  const size_t room = static_cast<size_t>(std::max(2, options_.columns())) - 1;
  std::string line = text(update);
  const std::string picture = bar(update, room - std::min(room, line.size()));
  const size_t after_step = line.find("  loss ");
  line.insert(after_step, picture);
  if (line.size() > room) line.resize(room);
  *options_.stream << '\r' << line << "\x1b[K" << std::flush;
  line_open_ = true;
}

}  // namespace tessera
