#pragma once
// What happens to the entries of a folder, as the kernel tells it: finer moments for a kill than
// any clock gives, because they follow what a program does.
//
// Example:
//   FolderEvents events(run + "/checkpoints");   // before the program starts
//   Program program(command, log);
//   events.await_events(5, program);
//   program.signal(SIGKILL);                     // while a checkpoint is written, say

#include <set>
#include <string>

#include "tests/fault/train/program.h"

namespace tessera {

class FolderEvents {
 public:
  explicit FolderEvents(const std::string& folder);
  FolderEvents(const FolderEvents&) = delete;
  FolderEvents& operator=(const FolderEvents&) = delete;
  ~FolderEvents();

  /// False where the folder cannot be watched.
  bool valid() const { return valid_; }

  /// Waits until `count` have happened since the object was made; false where the program ended
  /// before, or at the limit.
  bool await_events(int count, Program& program);

  /// The names of all entries that appeared or went, as far as they have been read.
  const std::set<std::string>& names();

 private:
  void read_events();

  int descriptor_;
  bool valid_ = false;
  int seen_ = 0;
  std::set<std::string> names_;
};

}  // namespace tessera
