#include "tessera/runtime/arena.h"

#include <atomic>

namespace tessera {
namespace {

std::atomic<int> poison_wanted = 0;

}  // namespace

const at::Tensor& Arena::reserve(int64_t bytes) {
  if (!block_.defined() || block_.numel() < bytes) {
    block_ = at::Tensor();  // first, so that not both are there
    block_ = device_.block(bytes);
  }
  return block_;
}

PoisonedArenas::PoisonedArenas() { ++poison_wanted; }
PoisonedArenas::~PoisonedArenas() { --poison_wanted; }
bool PoisonedArenas::wanted() { return poison_wanted > 0; }

}  // namespace tessera
