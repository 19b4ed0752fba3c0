// Variables that a launcher has left in the environment of a plain process. They may make it refuse
// to run, with a word; they must not make it silent.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tests/attack/launchers/attack.h"

namespace tessera::environment_test {
namespace {

constexpr const char* kNames[] = {"OMPI_COMM_WORLD_RANK",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "PMI_RANK",
                                  "PMI_SIZE",
                                  "SLURM_PROCID",
                                  "PMIX_RANK",
                                  "SLURM_STEP_NUM_TASKS",
                                  "PMIX_NAMESPACE",
                                  "SLURM_NTASKS",
                                  "TESSERA_RANK_RECORDS"};
constexpr const char* kValues[] = {"0", "1", "2", "-1", "", "x", "1x", "99999999999999999999"};

std::optional<int> number(const std::map<std::string, std::string>& variables,
                          const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return {};
  for (int n : {0, 1, 2})
    if (found->second == std::to_string(n)) return n;
  return {};
}

/// Whether they say in all form that this is a rank after the first: then it may keep quiet.
bool is_later_rank(const std::map<std::string, std::string>& variables) {
  const auto fits = [&](const char* rank, const char* size) {
    const auto r = number(variables, rank), s = number(variables, size);
    return r && s && *r > 0 && *r < *s;
  };
  return fits("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") || fits("PMI_RANK", "PMI_SIZE") ||
         fits("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
}

class StrayVariables : public LauncherAttack {};

TEST_F(StrayVariables, NeverSilenceAPlainProcess) {
  const AttackPlan plan(4);
  for_each_case(plan, [&](std::mt19937_64& random) {
    std::map<std::string, std::string> chosen;
    for (size_t n = 1 + random() % 3; n > 0; --n)
      chosen[kNames[random() % std::size(kNames)]] = kValues[random() % std::size(kValues)];
    if (is_later_rank(chosen)) return;
    Words variables;
    for (const auto& [name, value] : chosen) variables.push_back(name + "=" + value);
    SCOPED_TRACE(fmt::format("{}", fmt::join(variables, " ")));

    const Outcome good = attack(verify({}), variables);
    EXPECT_TRUE(good.exit_code == 0 || good.exit_code == 2 || good.exit_code == 3) << good.errors;
    if (good.exit_code == 0) expect_part(good.output, "OK: the same numbers");
    const Outcome bad = attack(verify({"--replicas", "99"}), variables);
    EXPECT_EQ(bad.exit_code, 2) << bad.errors;
    expect_part(bad.errors, "tessera: [");
  });
}

}  // namespace
}  // namespace tessera::environment_test
