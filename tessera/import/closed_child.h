#pragma once
// Runs something dangerous in a child process that can do nothing but compute and answer.
// TorchScript's reader was not written for hostile files: one that makes it crash, eat the memory,
// run for ever or run code of the file's own ends, or is confined to, the child; and the user reads
// an error.
//
//   this process ──fork──► child: limits, closed in (system_filter.h), work(send)
//        ▲                    │
//        └── answer: bytes ◄──┘
//
// The answer is bytes from a process that may be hostile: take it as any other input.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tessera {

struct ChildLimits {
  int64_t memory_bytes = int64_t{8} << 30;  // beyond what this process has now
  int cpu_seconds = 30;
  int wall_seconds = 40;
};

/// What to do where the system cannot close a process in.
enum class WithoutFilter { kRefuse, kGoOn };

using SendBytes = std::function<void(const void* data, size_t bytes)>;

/// The parent's end of the answer.
class ChildAnswer {
 public:
  ChildAnswer(int descriptor, std::chrono::steady_clock::time_point deadline)
      : descriptor_(descriptor), deadline_(deadline) {}

  /// At least one byte, at most `bytes`; 0 where the answer has ended. Throws InvalidInput after
  /// the deadline.
  size_t read_some(void* data, size_t bytes);

 private:
  int descriptor_;
  std::chrono::steady_clock::time_point deadline_;
};

/// `work` runs in the child and sends its answer; `receive` runs here and reads it. Whatever Error
/// `work` throws is thrown here again; a child that ends in another way, or gives an answer that
/// `receive` does not take, is InvalidInput, naming `subject`. Other threads of this process may be
/// at work, but must not hold a lock that `work` needs.
void ask_closed_child(const std::string& subject, const ChildLimits& limits,
                      WithoutFilter without_filter,
                      const std::function<void(const SendBytes&)>& work,
                      const std::function<void(ChildAnswer&)>& receive);

}  // namespace tessera
