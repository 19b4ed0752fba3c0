// Ctrl-C and what a batch system sends before it kills: a checkpoint, exit code 0, and the next
// start continues with the step that comes next.

#include <fmt/format.h>

#include <csignal>

#include "tests/fault/train/train_fault.h"

namespace tessera::signal_test {
namespace {

struct Case {
  const char* launch;
  int signal;
};

class Interrupted : public TrainFault, public testing::WithParamInterface<Case> {};

TEST_P(Interrupted, SavesAndContinues) {
  if (GetParam().launch == std::string("mpi") && !mpirun_is_installed())
    GTEST_SKIP() << "no mpirun on this machine";
  // No other checkpoint is due, so what is found was made for the signal.
  std::vector<std::string> more{"--launch", GetParam().launch,       "--checkpoint-interval",
                                "100",      "--validation-fraction", "0"};
  int64_t step = 0;
  {
    Program job(command(more), file("log"));
    ASSERT_TRUE(await([&] { return last_step(run()) >= 7 || job.ended(); }));
    ASSERT_TRUE(checkpoints(run()).empty());
    job.signal(GetParam().signal);
    ASSERT_EQ(job.wait(), 0) << job.errors();
    step = last_step(run());
    expect_contains(job.output(), fmt::format("interrupted after {} steps", step));
    EXPECT_TRUE(await([] { return living_descendants().empty(); })) << "a process is left behind";
  }
  ASSERT_LT(step, kSteps);
  ASSERT_EQ(checkpoints(run()), std::vector{fmt::format("{}/checkpoints/step-{:06}", run(), step)});
  expect_whole_checkpoints();
  more[1] = "threads";  // starts sooner, and a checkpoint belongs to no transport
  const Outcome next = play(command(more));
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  expect_contains(next.errors, fmt::format("resumed at step {} from ", step));
  EXPECT_EQ(last_step(run()), kSteps);
}

INSTANTIATE_TEST_SUITE_P(Signals, Interrupted,
                         testing::Values(Case{"threads", SIGINT}, Case{"threads", SIGTERM},
                                         Case{"mpi", SIGINT}, Case{"mpi", SIGTERM}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.launch,
                                              info.param.signal == SIGINT ? "SIGINT" : "SIGTERM");
                         });

class Interruption : public TrainFault {};

TEST_F(Interruption, LeavesTheWeightsOfAnUndisturbedRun) {
  {
    Program job(command(), file("log"));
    ASSERT_TRUE(await([&] { return last_step(run()) >= 5 || job.ended(); }));
    job.signal(SIGINT);
    ASSERT_EQ(job.wait(), 0) << job.errors();
    EXPECT_LT(last_step(run()), kSteps);
  }
  expect_resumes_and_finishes();
}

}  // namespace
}  // namespace tessera::signal_test
