#pragma once
// Loads the boxes of the next batch on a thread of its own while the current one computes. It gives
// exactly what the loader would give: a request that was not foreseen (another box, a jump to
// another batch, the same box twice) is simply loaded when it is asked for.
//
// It holds the boxes of one batch: they are loaded for batch b+1 as soon as all those of batch b
// were taken, which a step does at its beginning.
//
// One thread calls load(). An exception of the thread, for a batch that is then asked for, is
// rethrown by that request. The destructor waits for the box being loaded, no longer.
//
// Example:
//   Prefetch prefetch(loader, {{Field::kImages, my_image_box}, {Field::kTargets, my_target_box}},
//                     {.first_batch = 0, .real = at::kFloat});
//   prefetch.load({Field::kImages, my_image_box}, batch, target);

#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "tessera/data/batch_loader.h"

namespace tessera {

struct PrefetchOptions {
  int64_t first_batch = 0;
  int64_t end_batch = std::numeric_limits<int64_t>::max();  // nothing is prefetched from here on
  at::ScalarType real = at::kFloat;                         // of the images kept in between
};

class Prefetch {
 public:
  /// Begins to load `first_batch` at once. `requests` are what every step asks for; empty boxes
  /// and repetitions among them do not count. The loader's data set must outlive this.
  Prefetch(const BatchLoader& loader, const std::vector<BatchBox>& requests,
           const PrefetchOptions& options);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Writes the box of the batch into `target`, waiting for it where it is not there yet.
  void load(const BatchBox& request, int64_t batch, at::Tensor target);
  /// How many loads found their box prefetched.
  int64_t num_hits() const { return num_hits_; }

 private:
  void work();
  /// Waits for a box that is prefetched or will be; false where it is not.
  bool wait_for(size_t slot, int64_t batch);
  size_t slot_of(const BatchBox& request) const;
  at::ScalarType type_of(Field field) const;
  /// Lets the thread load this batch next, whatever it is at.
  void turn_to(int64_t batch);

  const BatchLoader loader_;
  const std::vector<BatchBox> requests_;
  const PrefetchOptions options_;
  std::vector<at::Tensor> boxes_;  // one per request
  int64_t num_hits_ = 0;

  std::vector<bool> taken_;
  size_t num_taken_ = 0;

  // Under the mutex. Boxes [0, num_loaded_) are the caller's to read, the others the thread's to
  // write. The generation tells the thread that what it just loaded is no longer wanted.
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t batch_ = 0;  // only the caller changes it
  uint64_t generation_ = 0;
  size_t num_loaded_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tessera
