#pragma once
// The process that forks readers (reader_process.h says why it is there). It ends when the process
// that made it does, and so do the readers.

#include <sys/types.h>

namespace tessera {

class ReaderKeeper {
 public:
  /// Throws OutOfMemory where the system has no process left.
  ReaderKeeper();
  ReaderKeeper(const ReaderKeeper&) = delete;
  ReaderKeeper& operator=(const ReaderKeeper&) = delete;
  ~ReaderKeeper();

  /// Whether this process has made it: a child that was forked later has a copy of no use.
  bool is_of_this_process() const;
  /// This end of a new reader's socket, the caller's to close. A reader that cannot be forked shows
  /// as one that is gone.
  int new_reader();

 private:
  pid_t owner_;
  pid_t keeper_ = -1;
  int socket_ = -1;
};

}  // namespace tessera
