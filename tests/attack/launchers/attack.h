#pragma once
// Base of the attacks on launching: a tiny job, a folder of its own for everything, a bystander
// that nobody may touch, and the rules that hold for every case.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/train/program.h"
#include "tests/fault/train/run_files.h"

namespace tessera {

using Words = std::vector<std::string>;

/// How many random cases, and the seed of the first: the next has the next seed. A failure names
/// the variables that repeat the case alone.
struct AttackPlan {
  explicit AttackPlan(int cases_by_default);
  int cases;
  uint64_t seed;
};

class LauncherAttack : public testing::Test {
 protected:
  void SetUp() override;
  /// The bystander is as it was.
  void TearDown() override;

  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  /// A job of two ranks whose answer is 0.
  Words verify(const Words& more = {"--launch", "mpi", "--timeout", "1"}) const;

  /// A training job of two ranks: its run folder and its weights have the name `run`.
  Words train(const std::string& run, int steps, const Words& more = {}) const;

  struct Outcome {
    int exit_code = -1;
    std::string output, errors;
  };
  /// Runs it to its end, and checks the rules: no signal, no internal error, no hang, no process
  /// left, no folder of records left. `variables` ("NAME=value") are added to its environment.
  Outcome attack(const Words& words, const Words& variables = {});

  /// Runs `body` once for each case of the plan, with a generator of its own.
  static void for_each_case(const AttackPlan& plan,
                            const std::function<void(std::mt19937_64&)>& body);

  /// For the number at the end; attack() counts its own.
  static void count_case();
  void expect_nothing_left();

  TemporaryFolder folder_;
};

bool mpirun_is_there();
void expect_part(const std::string& text, const std::string& part);

}  // namespace tessera
