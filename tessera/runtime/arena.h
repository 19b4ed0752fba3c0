#pragma once
// The memory in which the buffers of a rank's steps come and go: one block, which stays where it is
// from step to step, so that nothing is allocated and no page is faulted in again.
//
// Programs that run one after the other (training and validation) share one arena, which is as
// large as the largest of them needs. Results of a step stay until the next step of any of them.
//
// Example:
//   Arena arena(host_device());
//   const at::Tensor block = arena.reserve(layout.bytes);
//   block.narrow(0, layout.offsets[buffer], bytes);

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "tessera/runtime/device.h"

namespace tessera {

class Arena {
 public:
  /// In the memory of `device`, which outlives it.
  explicit Arena(Device& device) : device_(device) {}

  /// At least so many bytes, from an address that is a multiple of 64. Where that is more than
  /// before, tensors of the former block keep it alive, and another block takes its place.
  /// Throws OutOfMemory.
  const at::Tensor& reserve(int64_t bytes);

  /// Whose results it holds: an executor says so when it begins a step. Returns whether they were
  /// somebody else's before.
  bool hand_to(const void* user) { return std::exchange(user_, user) != user; }
  bool belongs_to(const void* user) const { return user_ == user; }

 private:
  Device& device_;
  at::Tensor block_;
  const void* user_ = nullptr;
};

/// While one of these lives, buffers are filled with values that are not numbers when they come and
/// when they go, so that a kernel that reads what nobody has written is noticed.
class PoisonedArenas {
 public:
  PoisonedArenas();
  ~PoisonedArenas();
  PoisonedArenas(const PoisonedArenas&) = delete;
  PoisonedArenas& operator=(const PoisonedArenas&) = delete;
  static bool wanted();
};

}  // namespace tessera
