#include "tessera/data/prefetch.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "tessera/graph/number_type.h"

namespace tessera {
namespace {

std::vector<BatchBox> distinct(const std::vector<BatchBox>& requests) {
  std::vector<BatchBox> kept;
  for (const BatchBox& request : requests)
    if (!request.box.empty() && std::find(kept.begin(), kept.end(), request) == kept.end())
      kept.push_back(request);
  return kept;
}

}  // namespace

Prefetch::Prefetch(const BatchLoader& loader, const std::vector<BatchBox>& requests,
                   const PrefetchOptions& options)
    : loader_(loader),
      requests_(distinct(requests)),
      options_(options),
      taken_(requests_.size(), false),
      batch_(options.first_batch) {
  // Here and not on the thread: the caller must learn of a failed allocation.
  for (const BatchBox& request : requests_)
    boxes_.push_back(at::empty(request.box.shape(), type_of(request.field)));
  thread_ = std::thread([this] { work(); });
}

/// As a step has them.
at::ScalarType Prefetch::type_of(Field field) const {
  if (!loader_.is_real(field)) return at::kLong;
  return field == Field::kTargets ? wide(options_.real) : options_.real;
}

Prefetch::~Prefetch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::load(const BatchBox& request, int64_t batch, at::Tensor target) {
  const size_t slot = slot_of(request);
  if (slot == requests_.size()) return loader_.load(request, batch, target);
  if (!wait_for(slot, batch)) {
    // The next batch, unless the thread is at it already or this one still has boxes to be taken.
    if (batch_ != batch + 1 && (batch_ != batch || num_taken_ == requests_.size()))
      turn_to(batch + 1);
    return loader_.load(request, batch, target);
  }
  target.copy_(boxes_[slot]);
  taken_[slot] = true;
  ++num_hits_;
  if (++num_taken_ == requests_.size()) turn_to(batch + 1);
}

bool Prefetch::wait_for(size_t slot, int64_t batch) {
  std::unique_lock lock(mutex_);
  if (batch_ != batch || batch_ >= options_.end_batch || taken_[slot]) return false;
  changed_.wait(lock, [&] { return num_loaded_ > slot || failure_; });
  if (!failure_) return true;
  // Reported once: asked again, the batch is loaded on the spot, and fails there if it still does.
  taken_.assign(taken_.size(), true);
  num_taken_ = num_loaded_ = requests_.size();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

size_t Prefetch::slot_of(const BatchBox& request) const {
  return std::find(requests_.begin(), requests_.end(), request) - requests_.begin();
}

void Prefetch::turn_to(int64_t batch) {
  {
    std::lock_guard lock(mutex_);
    batch_ = batch;
    ++generation_;
    num_loaded_ = 0;
    failure_ = nullptr;
  }
  taken_.assign(taken_.size(), false);
  num_taken_ = 0;
  changed_.notify_all();
}

void Prefetch::work() {
  // One thread for copies: the cores belong to the step that computes. ATen sets OpenMP's count
  // when a thread first asks for it, so ask before.
  at::get_num_threads();
  omp_set_num_threads(1);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] {
      return stop_ || (num_loaded_ < requests_.size() && !failure_ && batch_ < options_.end_batch);
    });
    if (stop_) return;
    const size_t slot = num_loaded_;
    const int64_t batch = batch_;
    const uint64_t generation = generation_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      loader_.load(requests_[slot], batch, boxes_[slot]);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (generation != generation_) continue;
    if (failure)
      failure_ = failure;
    else
      ++num_loaded_;
    changed_.notify_all();
  }
}

}  // namespace tessera
