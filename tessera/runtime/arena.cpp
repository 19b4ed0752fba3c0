#include "tessera/runtime/arena.h"

#include <sys/mman.h>

#include <atomic>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/runtime/small_pages.h"

namespace tessera {
namespace {

constexpr int64_t kHugePages = 4 << 20;  // from this size on

std::atomic<int> poison_wanted = 0;

at::Tensor map_block(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw_error<OutOfMemory>(
        "[memory] the system has no {} left for the values of a step; use more workers or a "
        "smaller input",
        format_bytes(bytes));
  if (bytes >= kHugePages && !SmallPages::wanted()) madvise(memory, size, MADV_HUGEPAGE);
  return at::from_blob(
      memory, {bytes}, [size](void* block) { munmap(block, size); }, at::kByte);
}

}  // namespace

const at::Tensor& Arena::reserve(int64_t bytes) {
  if (!block_.defined() || block_.numel() < bytes) {
    block_ = at::Tensor();  // first, so that not both are there
    block_ = bytes == 0 ? at::empty({0}, at::kByte) : map_block(bytes);
  }
  return block_;
}

PoisonedArenas::PoisonedArenas() { ++poison_wanted; }
PoisonedArenas::~PoisonedArenas() { --poison_wanted; }
bool PoisonedArenas::wanted() { return poison_wanted > 0; }

}  // namespace tessera
