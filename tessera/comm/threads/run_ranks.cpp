#include <thread>

#include "tessera/comm/threads/first_error.h"
#include "tessera/comm/threads/threads.h"

namespace tessera::threads {
namespace {

using Body = std::function<void(Transport&)>;

/// Reports before it aborts: errors that the abort causes on other ranks come later.
void run_body(Transport& transport, const Body& body, FirstError& first) noexcept {
  const auto fail = [&](const char* reason) {
    first.report(transport.rank(), transport.size(), std::current_exception());
    transport.abort(reason);
  };
  try {
    body(transport);
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("it threw something that is not a std::exception");
  }
}

/// Runs `work(rank)` on one thread per rank of the world and waits for all. A thread that cannot
/// start counts as a rank that failed.
void run_threads(const std::vector<std::unique_ptr<Transport>>& world,
                 const std::function<void(size_t)>& work, FirstError& first) {
  std::vector<std::jthread> ranks;
  ranks.reserve(world.size());
  for (size_t rank = 0; rank < world.size(); ++rank) {
    try {
      ranks.emplace_back(work, rank);
    } catch (const std::exception& e) {
      first.report(static_cast<int>(rank), static_cast<int>(world.size()),
                   std::current_exception());
      world[rank]->abort(e.what());
      break;
    }
  }
}  // joins

}  // namespace

void run_ranks(int size, const Body& body, const Options& options) {
  auto world = create(size, options);
  FirstError first;
  const auto work = [&](size_t rank) {
    run_body(*world[rank], body, first);
    world[rank].reset();  // leaves, so that a peer which still waits for this rank learns it now
  };
  run_threads(world, work, first);
  first.rethrow();
}

void run_ranks(const std::vector<std::unique_ptr<Transport>>& world, const Body& body) {
  FirstError first;
  run_threads(
      world, [&](size_t rank) { run_body(*world[rank], body, first); }, first);
  first.rethrow();
}

}  // namespace tessera::threads
