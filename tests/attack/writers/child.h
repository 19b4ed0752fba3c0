#pragma once
// The program as a child whose streams and limits are as bad as a case wants them.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::attack {

using Words = std::vector<std::string>;

enum class Stream {
  kOpen,        // a file, or for stdin the null device
  kClosed,      // the descriptor does not exist
  kFull,        // /dev/full
  kBrokenPipe,  // a pipe whose reader has gone
};

struct Surroundings {
  Stream in = Stream::kOpen;
  Stream out = Stream::kOpen;
  Stream err = Stream::kOpen;
  std::optional<uint64_t> most_file_bytes = std::nullopt;  // with the signal that comes by default
};

class Child {
 public:
  /// Starts TESSERA_PROGRAM with these words in `folder`. Its output goes to `log`.out and .err.
  Child(const Words& words, const std::string& folder, const std::string& log,
        const Surroundings& surroundings = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// The exit code; fails the test and returns -1 where a signal ended the program, or where it
  /// still runs after a minute.
  int exit_code();
  void kill_now();

  std::string output() const;
  std::string errors() const;

 private:
  std::optional<int> status_within(std::chrono::seconds limit);

  std::string name_;
  std::string log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct Ending {
  int exit_code;
  std::string out;
  std::string err;
};
/// Runs it to its end, with a log outside of `folder`.
Ending run(const Words& words, const std::string& folder, const Surroundings& surroundings = {});

/// As the program's own `--launch mpi` needs it.
bool mpirun_is_installed();

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

/// A folder for one case, gone with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tessera::attack
