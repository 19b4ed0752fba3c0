#pragma once
// What a rank holds at once when several micro-batches are under way. A schedule is walked once,
// for a chain of chunks; what it says is kept as moments: one task of the rank, and how far all
// micro-batches have come. So the bytes of a rank are the largest sum, over a few moments, of what
// its profile says of each micro-batch.

#include <utility>
#include <vector>

#include "tessera/lower/schedule.h"
#include "tessera/planner/balance_profile.h"

namespace tessera {

/// The chunks of a chain that a rank runs, ascending, per track: micro-batch m is on track m modulo
/// their number. GEMS has two, every other schedule one.
using ChunkTracks = std::vector<std::vector<int>>;

/// The segments that these chunks are, and what they hold.
struct TrackProfile {
  Segments segments;
  StageProfile profile;
};

class Flights {
 public:
  /// Chunk i of the chain runs on stage_of_chunk[i].
  Flights(const std::vector<int>& stage_of_chunk, const ChunkTracks& tracks, int64_t micro_batches,
          ScheduleKind kind);

  /// The most bytes of a rank with these tracks; infinite where they cannot be. `chunk_of_unit`
  /// says in which chunks the units of other ranks are taken to lie.
  double bytes(const std::vector<const TrackProfile*>& tracks,
               const std::vector<int>& chunk_of_unit) const;

 private:
  /// Of one micro-batch. It passes the chain forward and backward: its progress is the number of
  /// those tasks, of any rank, that it has begun. Weight gradients, where they are tasks, come any
  /// time after.
  struct State {
    int track = 0;
    int progress = 0;
    std::vector<bool> weights_done;  // per chunk of the track
    auto operator<=>(const State&) const = default;
  };
  struct OwnTask {
    int track = -1;
    int task = -1;  // as in StageProfile
    auto operator<=>(const OwnTask&) const = default;
  };
  struct Moment {
    OwnTask now;                              // it has just begun
    OwnTask last;                             // the one before it, if any
    std::vector<std::pair<int, int>> counts;  // of micro-batches, by the index of their state
    int64_t num_not_begun = 0;                // the most, where a moment comes again
  };

  void follow(const std::vector<ScheduledTask>& tasks, int64_t micro_batches, bool has_weights);
  int progress_before(const OwnTask& task) const;
  bool fits(int track, const Segments& segments, int num_units) const;
  int arrival_progress(int track, const Segments& segments, const Arrival& arrival,
                       const std::vector<int>& chunk_of_unit) const;
  std::vector<double> held_by_progress(int track, const TrackProfile& profile,
                                       const std::vector<int>& chunk_of_unit) const;

  const int num_chunks_;
  const ChunkTracks tracks_;
  std::vector<State> states_;
  std::vector<Moment> moments_;
};

}  // namespace tessera
