#pragma once
// Ranks as threads of one process: the default when nothing is launched around the program, and
// what most tests use. A message is one memcpy, made by whichever side comes second.
//
// The world fails together: a wait that runs out of time, a pair of messages of different sizes, or
// a rank whose transport is destroyed while a peer still waits for it abort the world for all
// ranks. A timeout's message says who waits for whom.
//
// Example:
//   threads::run_ranks(4, [](Transport& transport) {
//     barrier(transport, {0, 1, 2, 3});
//   });

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/comm/transport.h"

namespace tessera::threads {

struct Options {
  std::chrono::milliseconds timeout{60'000};  // of every wait
};

/// One transport per rank, all of one world. Rank r's object is to be driven by rank r's thread.
/// Throws InvalidInput when `size` or the timeout is not positive.
std::vector<std::unique_ptr<Transport>> create(int size, const Options& options = {});

/// Runs `body(transport)` on `size` threads and waits for all. If a body throws, its rank aborts
/// the world, so that the others end in bounded time; then the error of the rank that failed first
/// (in time) is rethrown with its kind kept and "rank r/size: " put before its message where that
/// does not stand there yet. An error that only reports another rank's failure counts when there is
/// no other. std::bad_alloc becomes OutOfMemory; what is not one of our errors, InternalError.
void run_ranks(int size, const std::function<void(Transport&)>& body, const Options& options = {});

/// The same over transports made by the caller (decorated ones, say).
void run_ranks(const std::vector<std::unique_ptr<Transport>>& world,
               const std::function<void(Transport&)>& body);

}  // namespace tessera::threads
