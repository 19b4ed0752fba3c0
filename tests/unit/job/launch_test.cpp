#include "tessera/job/launch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <mutex>
#include <set>

#include "tests/unit/refusal.h"

namespace tessera::launch_test {
namespace {

/// A variable of the environment, as a launcher sets it, for a while.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Launch, TheTransportIsTheOneAskedFor) {
  EXPECT_EQ(transport_name({}), "threads");
  EXPECT_EQ(transport_name({.launch = "mpi"}), "mpi");
}

TEST(Launch, AWorldThatWasStartedAroundUsIsUsed) {
  EXPECT_FALSE(is_secondary_process());
  const Variable size("OMPI_COMM_WORLD_SIZE", "2");
  {
    const Variable rank("OMPI_COMM_WORLD_RANK", "0");
    EXPECT_EQ(transport_name({.launch = "threads"}), "mpi");
    EXPECT_FALSE(is_secondary_process());
  }
  const Variable rank("OMPI_COMM_WORLD_RANK", "1");
  EXPECT_EQ(transport_name({.launch = "threads"}), "mpi");
  EXPECT_TRUE(is_secondary_process());
}

TEST(Launch, OneTaskOfABatchScriptIsNotAWorld) {
  const Variable rank("SLURM_PROCID", "0");
  {
    const Variable size("SLURM_STEP_NUM_TASKS", "1");
    EXPECT_EQ(transport_name({}), "threads");
  }
  const Variable size("SLURM_STEP_NUM_TASKS", "2");
  EXPECT_EQ(transport_name({}), "mpi");
}

/// A shell keeps them from a job that has ended: they must not silence a program's errors.
TEST(Launch, VariablesThatDoNotFitTogetherAreNotBelieved) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_SIZE"}) {
    const Variable alone(name, "1");
    EXPECT_EQ(transport_name({}), "threads") << name;
    EXPECT_FALSE(is_secondary_process()) << name;
  }
  for (const char* text : {"2", "-1", "", "1x", "99999999999999999999"}) {
    const Variable rank("OMPI_COMM_WORLD_RANK", text);
    const Variable size("OMPI_COMM_WORLD_SIZE", "2");
    EXPECT_EQ(transport_name({}), "threads") << text;
    EXPECT_FALSE(is_secondary_process()) << text;
  }
}

TEST(Launch, TheBodyRunsOnceOnEveryRank) {
  for (const int num_ranks : {1, 3}) {
    std::mutex mutex;
    std::multiset<int> ranks;
    run_on_ranks(num_ranks, {}, [&](Transport& transport) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(transport.size(), num_ranks);
      ranks.insert(transport.rank());
    });
    EXPECT_EQ(ranks, num_ranks == 1 ? std::multiset<int>({0}) : std::multiset<int>({0, 1, 2}));
  }
}

TEST(Launch, AnErrorKeepsItsKindAndNamesItsRank) {
  const auto fail_on_rank_1 = [](auto error) {
    run_on_ranks(3, {}, [&](Transport& transport) {
      if (transport.rank() == 1) throw error;
    });
  };
  EXPECT_EQ(refusal([&] { fail_on_rank_1(InvalidInput("[data] no such file")); }),
            "[data] rank 1/3: no such file");
  EXPECT_EQ(message_of<OutOfMemory>([&] { fail_on_rank_1(OutOfMemory("[memory] all gone")); }),
            "[memory] rank 1/3: all gone");
}

/// The command line of this program is not remembered: else it would start itself under mpirun.
TEST(Launch, RefusesToStartProcessesOfAnUnknownCommandLine) {
  bool ran = false;
  EXPECT_EQ(
      refusal([&] { run_on_ranks(4, {.launch = "mpi"}, [&](Transport&) { ran = true; }); }),
      "[launch] a program that starts mpirun itself calls remember_command_line() in main(); or "
      "start it with mpirun -n 4");
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tessera::launch_test
