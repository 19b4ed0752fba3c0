#pragma once
// One run of the program under attack: with its arguments, what it may have of the machine, and a
// signal at some moment; and how it ended.
//
// Example:
//   Attempt attempt{.arguments = {"plan", "unet2d", "--workers", "-1"}};
//   const Ending ending = make(attempt, folder);

#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tessera_attack {

struct Starvation {
  int resource = RLIMIT_AS;
  rlim_t limit = RLIM_INFINITY;  // soft and hard
  const char* name = "";         // as prlimit calls it
};

struct Attempt {
  std::vector<std::string> arguments;
  std::optional<Starvation> starvation = {};
  std::optional<int> signal = {};             // sent after
  std::chrono::milliseconds signal_after{0};  // that time, if the program still runs
};

struct Ending {
  int exit_code = -1;      // 128 + the signal where one ended it
  bool hung = false;       // it did not end by itself, nor by the signal
  bool signalled = false;  // our signal was sent
  double seconds = 0;
  std::string out;
  std::string err;
};

/// Runs it in `folder`, with at most a minute to end: more on a machine that has more to do than
/// cores to do it with.
Ending make(const Attempt& attempt, const std::string& folder);

/// As a shell takes it.
std::string to_string(const Attempt& attempt);

}  // namespace tessera_attack
