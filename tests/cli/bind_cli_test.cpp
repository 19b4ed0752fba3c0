// Which CPUs the workers of a program get, as its users see it.

#include <gtest/gtest.h>
#include <sched.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace bind_cli_test {
namespace {

using Texts = std::vector<std::string>;

const std::string kTwoWorkers =
    "bench cnn2d:base=4,depth=2 --input 2x3x32x32 --space 2x1 --iterations 1 --warmup 0 --json ";

Texts cpus_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  if (outcome.exit_code != 0) return {};
  return nlohmann::json::parse(outcome.out).at("cpus").get<Texts>();
}

/// This test, and what it starts, on one CPU.
class OnOneCpu {
 public:
  OnOneCpu() {
    sched_getaffinity(0, sizeof(before_), &before_);
    for (first_ = 0; !CPU_ISSET(first_, &before_);) ++first_;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof(before_), &before_); }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;
  std::string cpu() const { return std::to_string(first_); }

 private:
  cpu_set_t before_{};
  int first_ = 0;
};

TEST(BindCli, WhoStartsTheProgramOnOneCpuHasBoundIt) {
  const OnOneCpu one;
  EXPECT_EQ(cpus_of(tessera(kTwoWorkers)), (Texts{one.cpu(), one.cpu()}));
  const Outcome asked = tessera(kTwoWorkers + "--bind on");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_NE(asked.err.find("[--bind] workers cannot be bound: 2 workers with 1 thread each need 2 "
                           "CPUs, and there is 1"),
            std::string::npos)
      << asked.err;
}

TEST(BindCli, WorkersHaveCpusOfTheirOwn) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  const Texts off = cpus_of(tessera(kTwoWorkers + "--bind off"));
  ASSERT_EQ(off.size(), 2u);
  EXPECT_EQ(off[0], off[1]);
  for (const char* launch : {"", "--launch mpi "}) {
    const Outcome outcome = tessera(kTwoWorkers + launch + "--bind on");
    if (outcome.err.find("libopenmpi") != std::string::npos) GTEST_SKIP() << "no MPI";
    const Texts on = cpus_of(outcome);
    ASSERT_EQ(on.size(), 2u);
    EXPECT_NE(on[0], on[1]) << launch;
    EXPECT_NE(on[0], off[0]) << launch;
  }
}

}  // namespace
}  // namespace bind_cli_test
