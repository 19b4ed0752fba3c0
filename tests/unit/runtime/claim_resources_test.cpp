// Threads and buffers that cannot be had are an error with a remedy, not a hang inside a library.

#include "tessera/runtime/claim_resources.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/refusal.h"

namespace tessera::claim_resources_test {
namespace {

/// What claim_resources() says in a process that may map this much more.
std::string with_address_space(int64_t bytes, int ranks, int threads) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream file("/proc/self/statm");
    int64_t pages = 0;
    file >> pages;
    const rlim_t limit = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_AS, &limits);
    const std::string words = message_of<OutOfMemory>([&] { claim_resources(ranks, threads); });
    [[maybe_unused]] const ssize_t written = write(ends[1], words.data(), words.size());
    _exit(0);
  }
  close(ends[1]);
  std::string words(1000, '\0');
  words.resize(std::max<ssize_t>(0, read(ends[0], words.data(), words.size())));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return words;
}

constexpr int64_t kGiga = int64_t{1} << 30;

TEST(ClaimResources, TakesWhatIsThere) {
  claim_resources(4, 2);
  EXPECT_EQ(with_address_space(8 * kGiga, 2, 2), "");
}

TEST(ClaimResources, MoreThreadsThanAnybodyCanUseAreRefused) {
  expect_refusal([] { claim_resources(1, 1 << 20); }, "use at most");
}

/// OpenBLAS would ask for its buffer for ever.
TEST(ClaimResources, BuffersThatCannotBeHadAreAnError) {
  if (dlsym(RTLD_DEFAULT, "blas_memory_alloc") == nullptr)
    GTEST_SKIP() << "LibTorch multiplies matrices by another library here";
  EXPECT_NE(with_address_space(kGiga / 8, 2, 2).find("[memory]"), std::string::npos);
}

TEST(ClaimResources, ThreadsThatCannotBeHadAreAnError) {
  const std::string words = with_address_space(kGiga / 8, 200, 2);
  EXPECT_NE(words.find("of 608 threads can be started"), std::string::npos) << words;
}

}  // namespace
}  // namespace tessera::claim_resources_test
