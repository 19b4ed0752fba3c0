#include "tessera/data/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tessera {
namespace {

constexpr unsigned kMostReaders = 16;

/// Joins what has been started, also where an exception leaves the scope.
class Crew {
 public:
  ~Crew() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <class Work>
  bool start(const Work& work, int64_t worker) {
    try {
      threads_.emplace_back(work, worker);
      return true;
    } catch (const std::system_error&) {  // no more threads: those that there are do the work
      return false;
    }
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

void in_parallel(int64_t count, int threads,
                 const std::function<void(int64_t index, int64_t worker)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<int64_t> next{0}, first_bad{count};
  // Indices are handed out in their order, so all before the first bad one are tried.
  const auto work = [&](int64_t worker) {
    for (int64_t index = next++; index < first_bad; index = next++) {
      try {
        body(index, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (index >= first_bad) return;
        first_bad = index;
        failure = std::current_exception();
        return;
      }
    }
  };
  {
    Crew others;
    const int64_t workers = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, count));
    for (int64_t worker = 1; worker < workers && others.start(work, worker); ++worker) {
    }
    work(0);
  }
  if (failure) std::rethrow_exception(failure);
}

int reading_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kMostReaders));
}

}  // namespace tessera
