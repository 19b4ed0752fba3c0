#include "tessera/planner/balance_lives.h"

#include <algorithm>

namespace tessera {

void BufferLives::reset() {
  for (Slot slot : touched_) lives_[slot] = {};
  touched_.clear();
  task_ends_.clear();
  now_ = 0;
}

void BufferLives::touch(Slot slot, double bytes) {
  Life& life = lives_[slot];
  if (life.first < 0) {
    life.first = now_;
    life.bytes = bytes;
    touched_.push_back(slot);
  }
  life.last = now_;
}

void BufferLives::end_task() {
  task_ends_.push_back(now_);
  tick();
}

void BufferLives::measure(std::vector<double>* peak, std::vector<double>* level) {
  allocated_.assign(now_ + 1, 0);
  freed_.assign(now_ + 1, 0);
  for (Slot slot : touched_) {
    allocated_[lives_[slot].first] += lives_[slot].bytes;
    freed_[lives_[slot].last] += lives_[slot].bytes;
  }
  peak->assign(task_ends_.size(), 0);
  level->assign(task_ends_.size(), 0);
  double live = 0;
  int now = 0;
  for (size_t task = 0; task < task_ends_.size(); ++task) {
    for (; now <= task_ends_[task]; ++now) {
      live += allocated_[now];
      (*peak)[task] = std::max((*peak)[task], live);
      live -= freed_[now];
    }
    (*level)[task] = live;
  }
}

}  // namespace tessera
