#pragma once
// The cases of an attack, several at once: each worker is a process of its own, so that it knows
// its children by itself and a crash of one does not end the others.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

struct CaseOutcome {
  uint64_t seed = 0;
  std::string name;
  bool skipped = false;
  std::string account;  // what was wrong; empty where nothing was
};

/// Runs `play` for `count` seeds from `first_seed` on, in `num_workers` processes, and prints a
/// line for each. A worker that dies gives an outcome that says so.
std::vector<CaseOutcome> play_cases(uint64_t first_seed, int64_t count, int num_workers,
                                    const std::function<CaseOutcome(uint64_t seed)>& play);

/// A number from the environment, or the default where it is not set.
int64_t number_from_environment(const char* name, int64_t otherwise);

}  // namespace tessera
