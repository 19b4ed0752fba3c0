#pragma once
// Base of every test with ranks: a test that hangs ends the program with its name instead of
// keeping everyone waiting. The program must end, because threads that hang cannot be stopped.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace tessera {

class WatchedTest : public testing::Test {
 protected:
  // Far beyond what any test needs, sanitizers and busy machines included.
  static constexpr std::chrono::seconds kLimit{60};

  WatchedTest() : watchdog_([this] { watch(); }) {}

  ~WatchedTest() override {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_all();
    watchdog_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kLimit, [this] { return done_; })) return;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::fprintf(stderr, "[  FAILED  ] %s.%s hangs\n", info->test_suite_name(), info->name());
    std::_Exit(1);
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread watchdog_;  // last: it uses the others
};

}  // namespace tessera
