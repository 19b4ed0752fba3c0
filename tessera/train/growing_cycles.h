#pragma once
// Multigrid whose V-cycles become more while a network learns. Near a minimum gradients are small,
// and what few V-cycles leave is not: a run that goes on with them stalls. So where a step leaves
// too large a residual, or a check against the serial step (serial_check.h) finds too large an
// error, the run goes on with one V-cycle more in each direction. All ranks see the same numbers
// and change at the same step.

#include <map>
#include <mutex>
#include <string>

#include "tessera/train/training_job.h"

namespace tessera {

/// The lowered steps of a process's ranks, by their numbers of V-cycles: made when the first of
/// them asks. Any thread may ask.
class GrowingCycles {
 public:
  StepLowerings steps(const TrainingJob& job, const Multigrid& multigrid);

 private:
  std::mutex mutex_;
  std::map<std::string, StepLowerings> known_;
};

/// One V-cycle more in each direction.
Multigrid with_more_cycles(Multigrid multigrid);

/// "3/2": V-cycles forward and backward, as checkpoints keep them.
std::string cycles_text(const Multigrid& multigrid);
/// `multigrid` with the V-cycles of such a text. Throws InvalidInput where it is none.
Multigrid with_cycles(Multigrid multigrid, const std::string& text);

}  // namespace tessera
