#include "tessera/runtime/library_errors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/shortage.h"
#include "tessera/runtime/device.h"

namespace tessera {
namespace {

bool has_any_of(std::string_view words, std::initializer_list<std::string_view> signs) {
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return words.find(sign) != std::string_view::npos; });
}

bool is_full(const c10::Error& error, std::string_view words) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr || is_shortage(error) ||
         has_any_of(words, {"CUDA error: out of memory", "_STATUS_ALLOC_FAILED"});
}

/// What follows is where in LibTorch it was, and how its users set their own options.
std::string first_words(const c10::Error& error) {
  constexpr size_t kMost = 300;
  const std::string all = error.what_without_backtrace();
  size_t end = std::min(all.find('\n'), all.size());
  if (const size_t advice = all.find(" If reserved but unallocated"); advice < end) end = advice;
  return end <= kMost ? all.substr(0, end) : all.substr(0, kMost) + "...";
}

}  // namespace

void throw_as_ours(const c10::Error& error, const std::string& place) {
  const std::string words = first_words(error);
  const auto where = [&](const char* otherwise) { return place.empty() ? otherwise : place; };
  if (is_full(error, words))
    throw_error<OutOfMemory>(
        "[{}] no memory is left on {}: {}; use more workers, a smaller input or batch, --dtype "
        "bf16, or a higher --memory where that is the limit",
        where("memory"), place_of_this_thread().str(), words);
  if (has_any_of(words, {"no kernel image is available"}))
    throw_error<Unsupported>(
        "[{}] this program was built for other GPUs than {}; build it on this machine, or with "
        "CMAKE_CUDA_ARCHITECTURES",
        where("device"), place_of_this_thread().str());
  if (has_any_of(words, {"CUDA error", "CUDA driver error"}))
    throw_error<CommError>(
        "[{}] {} has failed: {}; start again, and training resumes from the last checkpoint; if it "
        "fails at the same place, nvidia-smi and the system's log (dmesg, NVRM: Xid) tell whether "
        "the GPU is at fault, and CUDA_LAUNCH_BLOCKING=1 names the kernel",
        where("device"), place_of_this_thread().str(), words);
  throw_error<InternalError>("[{}] {}", where("LibTorch"), error.what_without_backtrace());
}

}  // namespace tessera
