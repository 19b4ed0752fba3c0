#pragma once
// mpirun as a child process in a session of its own, so that Ctrl-C reaches the ranks through the
// launcher only: mpirun would give them a second to live. What it writes to stderr passes through,
// and the last of it is kept.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace tessera::mpi {

class Mpirun {
 public:
  enum class Network { kPrivate, kShared };

  /// Starts it; `words` is its command line, `variable` ("NAME=value") is added to its environment.
  /// A private network is one where the system allows it, else TCP is left out between the ranks.
  /// Throws InvalidInput where it cannot be started, and OutOfMemory where the system has no
  /// process or descriptor to give.
  Mpirun(std::vector<std::string> words, std::string variable, Network network);
  Mpirun(const Mpirun&) = delete;
  Mpirun& operator=(const Mpirun&) = delete;
  ~Mpirun();

  pid_t pid() const { return pid_; }
  /// As waitpid() gives it, once it has ended.
  int status() const { return status_; }
  const std::string& text() const { return text_; }

  /// Waits a moment for output and passes it on as it comes (progress bars have no line ends).
  /// False when mpirun has ended.
  bool attend(std::chrono::milliseconds moment);
  /// After the end: what is still in the pipe.
  void pass_on();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  int status_ = 0;
  bool output_ended_ = false;
  std::string text_;
};

}  // namespace tessera::mpi
