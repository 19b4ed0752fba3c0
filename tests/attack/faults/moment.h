#pragma once
// When a fault strikes: some time after the start, some time after a step, or right after something
// has happened in the folder of the checkpoints. Starting takes longer than training, so a clock
// alone would strike too early nearly always.

#include <chrono>
#include <memory>

#include "tests/attack/faults/scene.h"
#include "tests/fault/train/folder_events.h"

namespace tessera {

class Moment {
 public:
  /// Before the program starts.
  explicit Moment(Scene& scene);
  /// Returns at the moment, or when the program has ended.
  void await(Program& program);

 private:
  enum class After { kStart, kStep, kEvent };

  Scene& scene_;
  After after_;
  int64_t count_ = 0;  // of steps or events
  std::chrono::microseconds delay_{0};
  FolderEvents events_;
};

}  // namespace tessera
