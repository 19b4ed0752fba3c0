// Every model of the zoo on every kind of grid, in float64 against the oracle: grids that do not
// divide the image, replicas, pieces, and images whose deep levels have fewer pixels than workers.

#include <gtest/gtest.h>

#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/engine/zoo_families.h"

namespace tessera::zoo_battery_test {
namespace {

struct ZooCase {
  std::string model;
  Shape input;
  Plan plan;
  OptimiserKind optimiser = OptimiserKind::kSgd;
  int64_t steps = 2;
};

void PrintTo(const ZooCase& zoo, std::ostream* out) {
  *out << zoo.model << " " << to_string(zoo.input) << " on " << to_string(zoo.plan);
}

class ZooBattery : public testing::TestWithParam<ZooCase> {};

TEST_P(ZooBattery, EqualsTheOracle) {
  const ZooCase& zoo = GetParam();
  VerifyOptions options;
  options.plan = zoo.plan;
  options.optimiser = zoo.optimiser;
  options.steps = zoo.steps;
  const VerifyReport report = verify(build_model(zoo.model, zoo.input), options);
  EXPECT_TRUE(report.ok) << differences(report);
}

/// Whether the image holds the plan's parts; more parts than pixels are refused.
bool fits(const ZooCase& zoo) {
  try {
    check_plan(zoo.plan, ValueType::image(zoo.input));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// Each grid plain, with two replicas, and with pieces.
std::vector<ZooCase> on_grids(const std::vector<ZooFamily>& families) {
  std::vector<ZooCase> all;
  for (const ZooFamily& family : families)
    for (const std::vector<int64_t>& grid : family.grids)
      for (const Plan& plan : {Plan{1, grid, {}}, Plan{2, grid, {}}, Plan{1, grid, family.pieces}})
        all.push_back({family.model, family.input, plan, OptimiserKind::kSgd, family.steps});
  std::erase_if(all, [](const ZooCase& zoo) { return !fits(zoo); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Grids, ZooBattery, testing::ValuesIn(on_grids(small_models())));

INSTANTIATE_TEST_SUITE_P(Published, ZooBattery, testing::ValuesIn(on_grids(published_models())));

INSTANTIATE_TEST_SUITE_P(AdamW, ZooBattery,
                         testing::Values(ZooCase{"unet2d:base=2,depth=4,classes=3",
                                                 {2, 3, 43, 38},
                                                 {1, {2, 2}, {}},
                                                 OptimiserKind::kAdamW},
                                         ZooCase{"cnn2d:base=3,depth=3",
                                                 {2, 3, 37, 41},
                                                 {2, {1, 3}, {}},
                                                 OptimiserKind::kAdamW},
                                         ZooCase{"unet3d:base=2,depth=3",
                                                 {2, 1, 13, 12, 15},
                                                 {1, {1, 2, 3}, {}},
                                                 OptimiserKind::kAdamW}));

}  // namespace
}  // namespace tessera::zoo_battery_test
