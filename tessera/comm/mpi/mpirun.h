#pragma once
// mpirun as a child process in a session of its own, so that Ctrl-C reaches the ranks through the
// launcher only: mpirun would give them a second to live. What it writes passes through: results by
// way of our own stdout, so that we know where they get lost; and the last of its stderr is kept.

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
  /// After the end: what is still in the pipes.
  void pass_on();

 private:
  /// The reading end of a pipe.
  struct Source {
    int descriptor = -1;
    bool ended = false;
  };
  template <class Take>
  static void read_parts(Source& source, const Take& take);

  pid_t pid_ = -1;
  int status_ = 0;
  Source results_;  // its stdout, with that of the ranks
  Source remarks_;  // its stderr
  std::string text_;
};

}  // namespace tessera::mpi
