// What LibTorch throws reaches users as errors that they can do something about.

#include "tessera/runtime/library_errors.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/refusal.h"

namespace tessera::library_errors_test {
namespace {

const c10::SourceLocation kSomewhere{"f", "file.cpp", 1};

template <class Kind>
std::string translated(const c10::Error& error, const std::string& place = "") {
  return message_of<Kind>([&] { throw_as_ours(error, place); });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LibraryErrors, AFullDeviceIsOutOfMemoryWithTheRemedy) {
  const c10::OutOfMemoryError full(
      kSomewhere,
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1.00 GiB. If "
      "reserved but unallocated memory is large try setting X");
  const std::string message = translated<OutOfMemory>(full, "conv2d enc1");
  EXPECT_TRUE(message.starts_with("[conv2d enc1] no memory is left on cpu: CUDA out of memory"));
  EXPECT_TRUE(has(message, "use more workers, a smaller input or batch, --dtype bf16")) << message;
  EXPECT_FALSE(has(message, "reserved but unallocated"));
}

TEST(LibraryErrors, LibrariesSayItInTheirOwnWords) {
  for (const char* words :
       {"CUDA error: out of memory\nCUDA kernel errors might be reported later",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "[enforce fail at alloc_cpu.cpp:66] DefaultCPUAllocator: can't allocate memory"})
    EXPECT_NE(translated<OutOfMemory>(c10::Error(kSomewhere, words)), "") << words;
}

TEST(LibraryErrors, AFailedGpuIsNoBug) {
  const std::string message = translated<CommError>(
      c10::Error(kSomewhere, "CUDA error: an illegal memory access was encountered\nmore words"));
  EXPECT_TRUE(
      message.starts_with("[device] cpu has failed: CUDA error: an illegal memory access "
                          "was encountered; start again"))
      << message;
  EXPECT_FALSE(has(message, "more words"));
}

TEST(LibraryErrors, AnotherGpuThanTheBuildsIsUnsupported) {
  EXPECT_TRUE(has(translated<Unsupported>(
                      c10::Error(kSomewhere,
                                 "CUDA error: no kernel image is available for execution on the "
                                 "device")),
                  "built for other GPUs"));
}

TEST(LibraryErrors, AnythingElseIsOurBug) {
  EXPECT_TRUE(translated<InternalError>(c10::Error(kSomewhere, "sizes differ"), "conv2d enc1")
                  .starts_with("[conv2d enc1] sizes differ"));
}

/// Whatever a rank does, not only its kernels: it is the rank that is named.
TEST(LibraryErrors, RanksThatAreThreadsTranslateThem) {
  const std::string message = message_of<OutOfMemory>([&] {
    run_on_threads(2, 1, 10, [](Transport& transport) {
      if (transport.rank() == 1)
        throw c10::OutOfMemoryError(kSomewhere, "CUDA out of memory. Tried to allocate 1 GiB.");
      barrier(transport, everyone(2));
    });
  });
  EXPECT_TRUE(message.starts_with("[memory] rank 1/2: no memory is left")) << message;
}

}  // namespace
}  // namespace tessera::library_errors_test
