#pragma once
// Runs ranks of which one misbehaves and notes how each of them ended.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"

namespace tessera {

struct Outcome {
  std::vector<std::string> comm_errors;  // per rank; empty: it ended well or with another error
  std::string rethrown;                  // what run_ranks threw
};

using World = std::vector<std::unique_ptr<Transport>>;

inline Outcome outcome_of(const std::function<void(const std::function<void(Transport&)>&)>& run,
                          int size, const std::function<void(Transport&)>& body) {
  Outcome outcome;
  outcome.comm_errors.resize(size);
  try {
    run([&](Transport& transport) {
      try {
        body(transport);
      } catch (const CommError& e) {
        outcome.comm_errors[transport.rank()] = e.what();
        throw;
      }
    });
  } catch (const std::exception& e) {
    outcome.rethrown = e.what();
  }
  return outcome;
}

/// Over a world of the caller, whose transports stay when a rank ends.
inline Outcome outcome_of(const World& world, const std::function<void(Transport&)>& body) {
  return outcome_of([&](const auto& watched) { threads::run_ranks(world, watched); },
                    static_cast<int>(world.size()), body);
}

/// Over a new world, whose transports go when their rank ends.
inline Outcome outcome_of(int size, const threads::Options& options,
                          const std::function<void(Transport&)>& body) {
  return outcome_of([&](const auto& watched) { threads::run_ranks(size, watched, options); }, size,
                    body);
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

/// Every rank but `culprit` ended with a CommError that contains `part` and its own name.
inline void expect_all_others_say(const Outcome& outcome, int culprit, const std::string& part) {
  const int size = static_cast<int>(outcome.comm_errors.size());
  for (int rank = 0; rank < size; ++rank) {
    if (rank == culprit) continue;
    expect_contains(outcome.comm_errors[rank], part);
    expect_contains(outcome.comm_errors[rank], fmt::format("[comm] rank {}/{}: ", rank, size));
  }
}

}  // namespace tessera
