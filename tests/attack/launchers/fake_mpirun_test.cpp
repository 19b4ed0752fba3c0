// An mpirun that does not do what it should. What the ranks have not said does not count.

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "tests/attack/launchers/attack.h"

namespace tessera::fake_mpirun_test {
namespace {

/// A script, the exit code of a job under it, and what the launcher must say. In the script
/// "$program" "$@" is the rank's command.
struct Fake {
  const char* name;
  const char* script;
  int exit_code;
  const char* word;
};

std::ostream& operator<<(std::ostream& out, const Fake& fake) { return out << fake.name; }

constexpr Fake kFakes[] = {
    {"EndsAtOnce", "exit 0", 3, "mpirun ended without starting a rank"},
    {"SaysOne", "exit 1", 3, "mpirun ended with exit code 1 without starting a rank"},
    {"KillsItself", "kill -9 $$", 3, "mpirun was killed by signal 9"},
    {"HangsAndWillNotEnd", "trap '' TERM INT HUP; sleep 1000 & sleep 1000; sleep 1000", 3,
     "mpirun has not started ranks 0, 1 within 10 s"},
    {"LeavesAProcessBehind", "(trap '' TERM HUP; sleep 1000) & exit 0", 3,
     "mpirun ended without starting a rank"},
    {"PrintsGarbage", "head -c 2000000 /dev/urandom >&2; head -c 100000 /dev/zero; exit 1", 3,
     "without starting a rank"},
    {"PrintsOneLongLine", "head -c 1000000 /dev/zero | tr '\\0' ' ' >&2; exit 1", 3,
     "without starting a rank"},
    {"InventsADeath",
     "echo process rank 7 with PID 1 on node x exited on signal 9 >&2\n"
     "echo process rank 99999999999999999999 with PID 1 on node x exited on signal 9 >&2\n"
     "echo process rank 0 with PID 1 on node x exited on signal 99999999999 >&2; exit 1",
     3, "without starting a rank"},
    {"TellsNobodyARank", "\"$program\" \"$@\"", 3, "without telling it its rank"},
    {"StartsOneOfTwo", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \"$program\" \"$@\"", 3,
     "without starting rank 1"},
    {"StartsTheSecondOnly", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 \"$program\" \"$@\"", 3,
     "without starting rank 0"},
};

class FakeMpirun : public LauncherAttack, public testing::WithParamInterface<Fake> {
 protected:
  /// The words before the rank's command are the launcher's own: up to and with "-n 2".
  void install(const std::string& script) {
    std::filesystem::create_directories(file("bin"));
    write_file(file("bin/mpirun"),
               "#!/bin/bash\nwhile [ \"$1\" != -n ]; do shift; done\nshift 2\n"
               "program=$1\nshift\n" +
                   script + "\n");
    chmod(file("bin/mpirun").c_str(), 0755);
  }
  Words path() const { return {fmt::format("PATH={}:{}", file("bin"), std::getenv("PATH"))}; }
  Words path_without_others() const { return {"PATH=" + file("bin")}; }
};

TEST_P(FakeMpirun, IsSeenThrough) {
  install(GetParam().script);
  const Outcome outcome = attack(verify(), path());
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.errors;
  expect_part(outcome.errors, GetParam().word);
}

INSTANTIATE_TEST_SUITE_P(All, FakeMpirun, testing::ValuesIn(kFakes),
                         [](const auto& info) { return info.param.name; });

class OddMpirun : public FakeMpirun {
 protected:
  static std::string real_mpirun() {
    return fmt::format(
        "PATH={} mpirun --allow-run-as-root --oversubscribe -x TESSERA_RANK_RECORDS "
        "-n 2 \"$program\" \"$@\"",
        std::getenv("PATH"));
  }
};

TEST_F(OddMpirun, ThatCannotBeRunIsBadInput) {
  std::filesystem::create_directories(file("bin"));
  const auto expect_refused = [&](const char* what) {
    const Outcome outcome = attack(verify(), path_without_others());
    EXPECT_EQ(outcome.exit_code, 2) << what << ": " << outcome.errors;
    expect_part(outcome.errors, "[launch] cannot start mpirun");
  };
  expect_refused("none");
  write_file(file("bin/mpirun"), "#!/bin/bash\nexit 0\n");
  chmod(file("bin/mpirun").c_str(), 0644);
  expect_refused("not executable");
  std::filesystem::remove(file("bin/mpirun"));
  std::filesystem::create_directory(file("bin/mpirun"));
  expect_refused("a folder");
}

/// The ranks have said 0; that mpirun then fails or does not end does not matter.
TEST_F(OddMpirun, ThatGoesWrongAfterTheRanksHaveEndedWellDoesNotCount) {
  if (!mpirun_is_there()) GTEST_SKIP() << "no mpirun on this machine";
  for (const char* afterwards : {"exit 7", "trap '' TERM; sleep 1000"}) {
    install(real_mpirun() + "\n" + afterwards);
    const Outcome outcome = attack(verify(), path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_part(outcome.output, "OK: the same numbers");
  }
}

/// It dies in the midst of the job: the ranks do not stay.
TEST_F(OddMpirun, ThatIsKilledTakesItsRanksAlong) {
  if (!mpirun_is_there()) GTEST_SKIP() << "no mpirun on this machine";
  install(real_mpirun() + " &\nsleep 2; kill -9 $! $$");
  const Outcome outcome = attack(train("run", 1'000'000, {"--launch", "mpi"}), path());
  EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
}

}  // namespace
}  // namespace tessera::fake_mpirun_test
