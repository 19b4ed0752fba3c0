#pragma once
// A word on stderr about work that takes more than a few seconds, such as the plan of many workers.
// Silent until a program asks for it, since a library does not write to a user's terminal.
//
// Example:
//   SlowWork progress("planning", "workers have their program", num_ranks);
//   for (int rank = 0; rank < num_ranks; ++rank, progress.advance()) ...

#include <chrono>
#include <cstdint>
#include <string>

namespace tessera {

/// For all work from now on. Call it before there are other threads.
void show_slow_work();

class SlowWork {
 public:
  /// Words are "planning: 3 of 64 workers have their program".
  SlowWork(std::string work, std::string what, int64_t total);
  ~SlowWork();
  SlowWork(const SlowWork&) = delete;
  SlowWork& operator=(const SlowWork&) = delete;

  /// One more of them is done.
  void advance();

 private:
  using Clock = std::chrono::steady_clock;

  std::string work_;
  std::string what_;
  int64_t total_;
  int64_t done_ = 0;
  Clock::time_point next_word_;
  bool line_open_ = false;  // on a terminal, where words replace each other
};

}  // namespace tessera
