#include "tessera/runtime/caching_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <torch/version.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/runtime/small_pages.h"

namespace tessera {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = 2 << 20;

thread_local MemoryAccount* current_account = nullptr;
std::atomic<int> small_pages_wanted = 0;

/// Stands before every block; as long as the alignment, so that data stays aligned.
struct alignas(kAlignment) Header {
  int64_t capacity = 0;  // of the data
  int64_t booked = 0;
  MemoryAccount* account = nullptr;
};
static_assert(sizeof(Header) == kAlignment);

/// Eight steps per power of two: at most an eighth is wasted, and blocks of one size are found
/// again.
int64_t size_class(int64_t bytes) {
  if (bytes <= kAlignment) return kAlignment;
  const int64_t power = int64_t{1} << (63 - std::countl_zero(static_cast<uint64_t>(bytes)));
  const int64_t step = std::max(kAlignment, power / 8);
  return (bytes + step - 1) / step * step;
}

class BlockCache {
 public:
  void* take(int64_t bytes) {
    const int64_t capacity = size_class(bytes);
    Header* header = nullptr;
    {
      std::lock_guard lock(mutex_);
      // The best fit, but not one more than twice as large: half a block would be wasted.
      const auto found = free_.lower_bound(capacity);
      if (found != free_.end() && found->first <= 2 * capacity) {
        header = found->second.back();
        found->second.pop_back();
        if (found->second.empty()) free_.erase(found);
      }
    }
    if (!header) header = from_system(capacity);
    header->booked = bytes;
    header->account = current_account;
    if (header->account) header->account->add(bytes);
    return header + 1;
  }

  void give_back(void* data) {
    Header* header = static_cast<Header*>(data) - 1;
    if (header->account) header->account->add(-header->booked);
    std::lock_guard lock(mutex_);
    free_[header->capacity].push_back(header);
  }

  void release() {
    std::lock_guard lock(mutex_);
    for (auto& [capacity, headers] : free_) {
      for (Header* header : headers) std::free(header);
      system_bytes_ -= static_cast<int64_t>(headers.size()) * capacity;
    }
    free_.clear();
    malloc_trim(0);  // free() alone keeps what lies between blocks in use
  }

  int64_t system_bytes() {
    std::lock_guard lock(mutex_);
    return system_bytes_;
  }

  /// Around a fork: a thread that the child does not have must not hold the lock there.
  void hold() { mutex_.lock(); }
  void let_go() { mutex_.unlock(); }

 private:
  Header* from_system(int64_t capacity) {
    const int64_t total = capacity + static_cast<int64_t>(sizeof(Header));
    const int64_t alignment = total >= 2 * kHugePage ? kHugePage : kAlignment;
    const int64_t rounded = (total + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    if (!memory) {
      release();  // cached blocks of other sizes
      memory = std::aligned_alloc(alignment, rounded);
    }
    if (!memory)
      throw_error<OutOfMemory>(
          "[memory] the system has no {} bytes left; use more workers or a "
          "smaller input",
          rounded);
    // Not the last part of one: all of it would be there for the header's sake.
    if (alignment == kHugePage && !SmallPages::wanted())
      madvise(memory, total / kHugePage * kHugePage, MADV_HUGEPAGE);
    Header* header = new (memory) Header;
    header->capacity = capacity;
    std::lock_guard lock(mutex_);
    system_bytes_ += capacity;
    return header;
  }

  std::mutex mutex_;
  std::map<int64_t, std::vector<Header*>> free_;
  int64_t system_bytes_ = 0;
};

BlockCache& cache() {
  static BlockCache* cache = new BlockCache;  // tensors with static lifetime may outlive main()
  return *cache;
}

void delete_block(void* data) {
  if (data) cache().give_back(data);
}

class CachingAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override { return data_ptr(bytes); }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override { return data_ptr(bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &delete_block; }

 private:
  static c10::DataPtr data_ptr(size_t bytes) {
    void* data = bytes == 0 ? nullptr : cache().take(static_cast<int64_t>(bytes));
    return {data, data, &delete_block, c10::Device(c10::DeviceType::CPU)};
  }
};

}  // namespace

void MemoryAccount::add(int64_t bytes) {
  const int64_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void install_caching_allocator() {
  if (std::getenv("TESSERA_SYSTEM_MALLOC")) return;
  static CachingAllocator* allocator = [] {
    auto* created = new CachingAllocator;
    c10::SetAllocator(c10::DeviceType::CPU, created, /*priority=*/1);
    pthread_atfork([] { cache().hold(); }, [] { cache().let_go(); }, [] { cache().let_go(); });
    return created;
  }();
  (void)allocator;
}

AccountScope::AccountScope(MemoryAccount* account)
    : previous_(std::exchange(current_account, account)) {}
AccountScope::~AccountScope() { current_account = previous_; }

SmallPages::SmallPages() { ++small_pages_wanted; }
SmallPages::~SmallPages() { --small_pages_wanted; }
bool SmallPages::wanted() { return small_pages_wanted > 0; }

int64_t system_bytes() { return cache().system_bytes(); }
void release_cached_memory() { cache().release(); }

}  // namespace tessera
