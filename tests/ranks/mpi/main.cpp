// Started by CTest as it is, this program launches itself under mpirun with several numbers of
// ranks and sizes of chunks. Started as a rank, it runs all tests over the world.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"
#include "tests/ranks/mpi/world.h"

namespace tessera {
namespace {

Transport* shared_world = nullptr;

/// Prints only failures on ranks other than 0.
class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", world().rank(), result.file_name(),
                   result.line_number(), result.summary());
  }
};

/// Worlds of the same processes, one after the other: the tests' world comes after some, and one
/// comes after it.
void expect_whole_world(const mpi::Options& options) {
  mpi::run_rank(
      [](Transport& transport) {
        shared_world = &transport;
        double count = 1;
        AllReduce(transport, everyone(), &count, 1, SumType::kFloat64).finish();
        if (count != transport.size())
          throw_error<InternalError>("{} of {} ranks are there", count, transport.size());
      },
      options);
}

int run_tests() {
  int result = 0;
  mpi::Options options;
  options.timeout = std::chrono::seconds(30);
  if (const char* chunk = std::getenv("TESSERA_TEST_CHUNK"))
    options.chunk_bytes = std::atoll(chunk);
  for (int n = 0; n < 5; ++n) expect_whole_world(options);
  mpi::run_rank(
      [&](Transport& transport) {
        shared_world = &transport;
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        if (transport.rank() != 0) {
          delete listeners.Release(listeners.default_result_printer());
          listeners.Append(new FailuresOnly);
        }
        result = RUN_ALL_TESTS();
      },
      options);
  expect_whole_world(options);
  return result;
}

/// Small chunks cut most messages of the tests; the default cuts none.
int launch_all(const std::vector<std::string>& command) {
  struct Case {
    int ranks;
    const char* chunk_bytes;
  };
  for (const Case& one : {Case{1, "1000000"}, Case{2, "100000"}, Case{3, "268435456"},
                          Case{4, "4001"}, Case{5, "30011"}}) {
    std::printf("=== %d ranks, chunks of %s bytes\n", one.ranks, one.chunk_bytes);
    std::fflush(stdout);
    setenv("TESSERA_TEST_CHUNK", one.chunk_bytes, 1);
    if (const int code = mpi::launch(one.ranks, command)) return code;
  }
  return 0;
}

}  // namespace

Transport& world() { return *shared_world; }

Members everyone() {
  Members all(world().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  constexpr int kSkipped = 77;  // CTest counts it as a skip
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), argv + 1, argv + argc);
  testing::InitGoogleTest(&argc, argv);
  if (!mpi::available()) return kSkipped;
  try {
    return mpi::launched() ? run_tests() : launch_all(command);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
  }
}
