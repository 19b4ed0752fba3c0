#pragma once
// A device of the CPU: its queue runs on a thread of its own, in order, some random time after the
// host has gone on. Its memory is the host's, so a test sees wrong numbers where something is
// copied too early or too late: it fills what is sent by work in the queue, over poison, and puts
// poison there again as soon as it may.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tessera/comm/device_queue.h"

namespace tessera {

inline constexpr char kPoison = '\x7f';  // numbers of it are large

class FakeQueue final : public DeviceQueue {
 public:
  explicit FakeQueue(uint64_t seed) : random_(seed), worker_([this] { run(); }) {}

  ~FakeQueue() override {
    release();
    drain_all();
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// A kernel.
  void then(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }

  /// Between these two nothing runs that is not running yet.
  void hold() { set_held(true); }
  void release() { set_held(false); }

  /// From its n-th copy on, calls throw.
  void lose_after(int64_t copies) { copies_left_ = copies; }

  int64_t num_drains() const { return num_drains_; }
  int64_t num_blocks() const { return num_blocks_; }

  std::shared_ptr<const Moment> now() override {
    auto moment = std::make_shared<FakeMoment>();
    then([moment] { moment->pass(); });
    return moment;
  }

  void wait_for(const Moment& moment) override {
    then([state = dynamic_cast<const FakeMoment&>(moment).state] { state->wait(); });
  }

  void copy(void* to, const void* from, int64_t bytes) override {
    if (copies_left_-- <= 0) throw std::runtime_error("the device is lost");
    then([=] { std::memcpy(to, from, static_cast<size_t>(bytes)); });
  }

  void add(void* sums, const void* terms, int64_t count, SumType type) override {
    if (type == SumType::kFloat32)
      add_numbers(static_cast<float*>(sums), static_cast<const float*>(terms), count);
    else
      add_numbers(static_cast<double*>(sums), static_cast<const double*>(terms), count);
  }

  /// Released blocks are poisoned and stay, so that a late copy gives wrong numbers.
  std::shared_ptr<void> host_memory(int64_t bytes) override {
    ++num_blocks_;
    const auto block = std::make_shared<std::vector<char>>(bytes, kPoison);
    blocks_.push_back(block);
    return {block->data(), [block](void*) { std::fill(block->begin(), block->end(), kPoison); }};
  }

  void drain() override {
    ++num_drains_;
    drain_all();
  }

  void* native() override { return this; }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool passed = false;

    void wait() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return passed; });
    }
  };

  struct FakeMoment final : Moment {
    std::shared_ptr<State> state = std::make_shared<State>();

    void pass() const {
      std::lock_guard lock(state->mutex);
      state->passed = true;
      state->changed.notify_all();
    }
  };

  template <class T>
  void add_numbers(T* sums, const T* terms, int64_t count) {
    then([=] {
      for (int64_t i = 0; i < count; ++i) sums[i] += terms[i];
    });
  }

  void set_held(bool held) {
    {
      std::lock_guard lock(mutex_);
      held_ = held;
    }
    changed_.notify_all();
  }

  void drain_all() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return work_.empty() && !running_; });
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || (!held_ && !work_.empty()); });
      if (ended_) return;
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      running_ = true;
      lock.unlock();
      pause();
      next();
      lock.lock();
      running_ = false;
      if (work_.empty()) idle_.notify_all();
    }
  }

  void pause() {
    const uint64_t kind = random_() % 16;
    if (kind == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    if (kind < 8) std::this_thread::yield();
  }

  std::mt19937_64 random_;  // the worker's
  std::atomic<int64_t> copies_left_{int64_t{1} << 60};
  std::atomic<int64_t> num_drains_{0}, num_blocks_{0};
  std::vector<std::shared_ptr<std::vector<char>>> blocks_;

  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<std::function<void()>> work_;
  bool held_ = false, running_ = false, ended_ = false;
  std::thread worker_;  // last: it uses the others
};

}  // namespace tessera
