#pragma once
// A switch for tests: while an object of this class lives, tensors on the CPU take the tables made
// of ATen's functions (kernel.h), where a family has one. These are what other devices run, so they
// are tested on machines that have none.
//
// Example:
//   const LibraryKernels switched_on;
//   verify(graph, options);  // with the kernels that a device without loops of our own runs

#include <atomic>

namespace tessera {

/// Holds for all threads of the process. Made and destroyed while no kernel runs.
class LibraryKernels {
 public:
  LibraryKernels() { ++number_alive(); }
  ~LibraryKernels() { --number_alive(); }
  LibraryKernels(const LibraryKernels&) = delete;
  LibraryKernels& operator=(const LibraryKernels&) = delete;

  static bool are_used() { return number_alive().load(std::memory_order_relaxed) > 0; }

 private:
  static std::atomic<int>& number_alive() {
    static std::atomic<int> number{0};
    return number;
  }
};

}  // namespace tessera
