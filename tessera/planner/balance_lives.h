#pragma once
// When buffers come and go: each lives from the first time that it is touched to the last.

#include <vector>

namespace tessera {

using Slot = int;

class BufferLives {
 public:
  explicit BufferLives(int num_slots) : lives_(num_slots) {}

  void reset();
  /// What is touched between two ticks is there at once.
  void tick() { ++now_; }
  void touch(Slot slot, double bytes);
  void end_task();

  /// Per task: the most bytes during it, and those that are left when it has ended.
  void measure(std::vector<double>* peak, std::vector<double>* level);

 private:
  struct Life {
    int first = -1;
    int last = -1;
    double bytes = 0;
  };

  int now_ = 0;
  std::vector<Life> lives_;  // per slot
  std::vector<Slot> touched_;
  std::vector<int> task_ends_;
  std::vector<double> allocated_, freed_;  // per tick
};

}  // namespace tessera
