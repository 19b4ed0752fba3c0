#pragma once
// Memory of a thread for what a kernel keeps in the caches: at most a few megabytes, which are
// taken once and used by all kernels in turn.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace tessera {

/// `count` numbers that hold anything, until the thread asks for a buffer again.
template <class T>
T* thread_buffer(int64_t count) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local int64_t size = 0;
  const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
  if (bytes > size) {
    memory.reset();
    size = 0;
    memory.reset(std::aligned_alloc(64, static_cast<size_t>(bytes)));
    if (memory == nullptr) throw std::bad_alloc();
    size = bytes;
  }
  return static_cast<T*>(memory.get());
}

}  // namespace tessera
