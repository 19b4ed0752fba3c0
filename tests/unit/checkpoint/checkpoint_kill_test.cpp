// SIGKILL at any moment of a save: the store has a whole checkpoint afterwards, no older than the
// last one that was reported as saved, and what the killed run left does not pile up.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <random>
#include <stdexcept>

#include "tessera/checkpoint/checkpoint.h"
#include "tests/unit/checkpoint/example_state.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::checkpoint_kill_test {
namespace {

constexpr int64_t kElements = 30000;  // small enough for one thread, large enough for a long write
constexpr int kKeepLast = 2;

using Clock = std::chrono::steady_clock;

// In memory that parent and child share.
struct Progress {
  std::atomic<int64_t> saved{0};  // the last step whose save() returned
  std::atomic<int64_t> begun{0};  // the last step whose save() was called
};

class SharedProgress {
 public:
  SharedProgress() {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    progress_ = new (memory) Progress;
  }
  ~SharedProgress() { ::munmap(progress_, sizeof(Progress)); }
  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

// What a run does, seen from its checkpoints. Every third is the best one; every step is saved
// twice, so that checkpoints are replaced as well.
void save_for_ever(const std::string& folder, const SharedProgress& progress) {
  CheckpointStore store(folder, kKeepLast);
  for (int64_t step = progress->saved + 1;; ++step) {
    const TrainingState state = example_state(step, kElements);
    progress->begun = step;
    store.save(state, step % 3 == 0);
    progress->saved = step;
    store.save(state, step % 3 == 0);
  }
}

// The child ends with 1 where `call` comes to an end of its own.
pid_t start(const std::function<void()>& call) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    call();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the run failed: %s\n", error.what());
  }
  ::_exit(1);
}

void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "it ended by itself: " << status;
}

void expect_whole(const std::string& folder, const SharedProgress& progress) {
  CheckpointStore store(folder, kKeepLast, [](const std::string& text) { ADD_FAILURE() << text; });
  const auto latest = store.latest_valid();
  if (progress->saved == 0 && !latest) return;
  ASSERT_TRUE(latest) << "step " << progress->saved << " was saved";
  const TrainingState state = store.load(*latest);
  EXPECT_GE(state.step, progress->saved);
  EXPECT_LE(state.step, progress->begun);
  EXPECT_TRUE(same_state(state, example_state(state.step, kElements))) << *latest;
  EXPECT_TRUE(progress->saved < 3 || store.best());
  // Besides the last ones: the best, one that is due to go, one that replaces another, one on its
  // way, one half removed; the link to the best, and another one on its way.
  EXPECT_LE(names_in(folder).size(), static_cast<size_t>(kKeepLast + 7));
}

void expect_no_leftovers_after_the_next_save(const std::string& folder,
                                             const SharedProgress& progress) {
  CheckpointStore store(folder, kKeepLast, [](const std::string& text) { ADD_FAILURE() << text; });
  store.save(example_state(progress->begun + 1, kElements), true);
  for (const std::string& name : names_in(folder))
    EXPECT_TRUE(name == "best" ||
                (parse_checkpoint_name(name) && name.find('.') == std::string::npos))
        << name;
  EXPECT_LE(names_in(folder).size(), static_cast<size_t>(kKeepLast + 1));
}

// True once the run has begun to save a step after `step`.
bool wait_until_begun(const SharedProgress& progress, int64_t step) {
  const auto limit = Clock::now() + std::chrono::seconds(20);
  while (progress->begun <= step && Clock::now() < limit) ::usleep(50);
  return progress->begun > step;
}

useconds_t microseconds_of_a_save() {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), kKeepLast);
  store.save(example_state(1, kElements), false);
  const auto begin = Clock::now();
  store.save(example_state(2, kElements), false);
  return static_cast<useconds_t>((Clock::now() - begin) / std::chrono::microseconds(1));
}

TEST(CheckpointKill, AtRandomMoments) {
  const ScratchFolder folder;
  const SharedProgress progress;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<useconds_t> delay(0, 2 * microseconds_of_a_save());
  int inside_a_write = 0;
  for (int kill = 0; kill < 80 && !HasFailure(); ++kill) {
    const int64_t before = progress->saved;
    progress->begun = before;
    const pid_t run = start([&] { save_for_ever(folder.path(), progress); });
    const bool begun = wait_until_begun(progress, before);
    ::usleep(delay(random));
    kill_child(run);
    ASSERT_TRUE(begun);
    for (const std::string& name : names_in(folder.path()))
      inside_a_write += name.starts_with(".writing") ? 1 : 0;
    expect_whole(folder.path(), progress);
  }
  EXPECT_GT(inside_a_write, 0);
  expect_no_leftovers_after_the_next_save(folder.path(), progress);
}

enum class Traced { kStopped, kEnded, kNotAllowed };

// Lets a traced child run to a stop, of which there are two in each system call.
Traced run_to_stop(pid_t child, int stop) {
  int status = 0;
  for (int i = 0; i <= stop; ++i) {  // the first is its own SIGSTOP
    if (i > 0) ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? Traced::kEnded : Traced::kNotAllowed;
  }
  return Traced::kStopped;
}

// Replaces a checkpoint, and removes an old one on the way.
void save_step_4_twice(const std::string& folder, const SharedProgress& progress) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return;
  ::raise(SIGSTOP);
  CheckpointStore store(folder, kKeepLast);
  const TrainingState state = example_state(4, kElements);
  progress->begun = 4;
  store.save(state, false);
  progress->saved = 4;
  store.save(state, false);
  ::_exit(0);
}

// Not by chance: before and after each system call.
TEST(CheckpointKill, AtEverySystemCall) {
  const ScratchFolder three(ScratchFolder::Medium::kMemory);
  for (int64_t step : {1, 2, 3})
    CheckpointStore(three.path(), 3).save(example_state(step, kElements), step == 2);
  int stop = 1;
  for (;; ++stop) {
    const ScratchFolder folder(ScratchFolder::Medium::kMemory);
    using Options = std::filesystem::copy_options;
    std::filesystem::copy(three.path(), folder.path(), Options::recursive | Options::copy_symlinks);
    SCOPED_TRACE(::testing::Message() << "stop " << stop);
    const SharedProgress progress;
    progress->begun = progress->saved = 3;
    const pid_t run = start([&] { save_step_4_twice(folder.path(), progress); });
    const Traced traced = run_to_stop(run, stop);
    if (traced == Traced::kNotAllowed) GTEST_SKIP() << "tracing a child is not allowed here";
    if (traced == Traced::kEnded) break;
    kill_child(run);
    expect_whole(folder.path(), progress);
    expect_no_leftovers_after_the_next_save(folder.path(), progress);
    if (HasFailure()) break;
  }
  EXPECT_GT(stop, 100) << "two saves take more system calls than this";
}

}  // namespace
}  // namespace tessera::checkpoint_kill_test
