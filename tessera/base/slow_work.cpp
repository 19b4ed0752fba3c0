#include "tessera/base/slow_work.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "tessera/base/standard_streams.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 3s;  // before the first word
constexpr auto kTerminalInterval = 1s;
constexpr auto kPlainInterval = 10s;

bool shown = false;

}  // namespace

void show_slow_work() { shown = true; }

SlowWork::SlowWork(std::string work, std::string what, int64_t total)
    : work_(std::move(work)),
      what_(std::move(what)),
      total_(total),
      next_word_(Clock::now() + kPatience) {}

SlowWork::~SlowWork() {
  if (line_open_) write_error("\r\033[K");
}

void SlowWork::advance() {
  ++done_;
  if (!shown || Clock::now() < next_word_) return;
  line_open_ = isatty(STDERR_FILENO) != 0;
  next_word_ = Clock::now() + (line_open_ ? kTerminalInterval : kPlainInterval);
  const std::string words = fmt::format("{}: {} of {} {}", work_, done_, total_, what_);
  write_error(line_open_ ? "\r\033[K" + words : words + "\n");
}

}  // namespace tessera
