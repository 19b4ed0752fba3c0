#pragma once
// A program as a child process that a test may kill, stop and wait for. Its output goes to files,
// so no pipe can block it. Orphans of a killed child become children of the test (a subreaper), so
// that the destructor finds and kills every process that it started, ranks included.
//
// Example:
//   Program job({TESSERA_PROGRAM, "train", ...}, folder + "/log");
//   ASSERT_TRUE(await([&] { return last_step(folder) >= 5; }, kLimit));
//   kill(job.ranks().at(2), SIGKILL);
//   EXPECT_EQ(job.wait(kLimit), 3) << job.errors();

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Far beyond what a busy machine needs; a wait that long is a hang.
constexpr std::chrono::seconds kLimit{60};

/// Looks again and again; false where the condition has not come true in time.
bool await(const std::function<bool()>& condition, std::chrono::milliseconds limit = kLimit);

/// What a child may use.
struct ProgramOptions {
  std::optional<uint64_t> most_file_bytes;  // writing more fails with EFBIG
};

class Program {
 public:
  /// `log` is a path; what the program prints goes to log.out and log.err.
  Program(const std::vector<std::string>& words, const std::string& log,
          const ProgramOptions& options = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  bool ended();
  /// The exit code, or 128 + the signal that killed it; nothing where it still runs at the limit.
  std::optional<int> wait(std::chrono::milliseconds limit = kLimit);
  void signal(int number);

  std::string output() const;
  std::string errors() const;

  /// The ranks that live, by number: descendants whose environment says which rank they are.
  std::map<int, pid_t> ranks() const;

 private:
  std::string log_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

/// Descendants of this process that still live (stopped ones do, zombies do not).
std::vector<pid_t> living_descendants();

/// As the program's own `--launch mpi` needs it.
bool mpirun_is_installed();

}  // namespace tessera
