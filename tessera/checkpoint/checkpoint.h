#pragma once
// Checkpoints: all that a run needs to go on, independent of grid, transport and number of ranks
// (one rank collects and writes). A checkpoint is one folder, made atomically:
//
//   checkpoints/
//     step-000100/   tensors.safetensors   parameters, buffers, optimiser state
//     step-000200/   state.json            position, metadata, sizes and checksums of it all
//     best -> step-000100                  the best by the run's own judgement (best_link.h)
//     .writing-step-000300/                on its way, or left by a killed run
//
// Files and folder are forced to the disk before the rename that gives the folder its name, so a
// folder named step-N is whole, whatever killed the run. The latest is found by looking, never by a
// pointer that could dangle. Damage from outside is found by checksums, and such a folder is passed
// over.
//
// Everything throws InvalidInput with path and reason. One thread at a time.
//
// Example:
//   CheckpointStore store("run/checkpoints", 3);
//   store.claim();                                    // fails now rather than after an hour
//   if (auto path = store.latest_valid()) state = store.load(*path);
//   ...
//   store.save(state, loss < best_loss);

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "tessera/checkpoint/checkpoint_name.h"
#include "tessera/checkpoint/state_file.h"
#include "tessera/checkpoint/training_state.h"

namespace tessera {

class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  /// Touches nothing yet, so that any rank or program may read the checkpoints of a running job.
  /// Keeps the `keep_last` newest checkpoints and the best. Warnings go to stderr unless `warn`
  /// takes them.
  CheckpointStore(std::string folder, int keep_last, Warn warn = {});
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;
  ~CheckpointStore();

  /// Makes the folder, takes it for this run (a second run that writes there is refused until this
  /// process or object ends), and removes or finishes what a killed run left half done. save() does
  /// it where it was not done before.
  void claim();

  /// Writes a checkpoint and returns its path. One of the same step is replaced. Older ones are
  /// removed only once the new one is safe; if it fails, all are as before. Those of higher steps
  /// (a run that went back) count for nothing and stay until the run has passed them. So do those
  /// that are seen to be damaged: by latest_valid(), by their state or by their size. A folder that
  /// has taken the place of the claimed one is refused: it may be another run's.
  std::string save(const TrainingState& state, bool is_best);

  /// The checkpoint with the highest step that is whole, all bytes checked; a warning names the
  /// others.
  std::optional<std::string> latest_valid();
  /// The same of the best: the one that was last saved as best.
  std::optional<std::string> best();

  TrainingState load(const std::string& path) const;

 private:
  CheckpointName replace_same_step(const CheckpointName& saved);
  void finish_replacements();
  std::optional<CheckpointName> newest_best() const;
  /// Of those up to `newest`, where one of them is.
  std::optional<CheckpointName> known_best(const CheckpointName& newest) const;
  void link_best(const std::optional<CheckpointName>& best);
  void prune(const CheckpointName& saved, const std::optional<CheckpointName>& best);
  void discard(const CheckpointName& name);
  /// Nothing where it cannot be read, or the other file has another size than it says.
  std::optional<StateFile> state_of(const CheckpointName& name) const;
  bool is_best(const CheckpointName& name) const;
  bool is_whole(const CheckpointName& name);
  std::string path_of(const CheckpointName& name) const;

  std::string folder_;
  int keep_last_;
  Warn warn_;
  std::set<CheckpointName> damaged_;  // of those that were read
  int claim_ = -1;                    // a descriptor of the folder; its lock dies with the process
};

}  // namespace tessera
