// Every model of the zoo on every kind of grid, in float64 against the oracle: grids that do not
// divide the image, replicas, pieces, and images whose deep levels have fewer pixels than workers.

#include <gtest/gtest.h>

#include <optional>

#include "tessera/kernels/library_kernels.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/device_under_test.h"
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
  bool by_library = false;  // with the kernels that devices without loops of our own run
};

void PrintTo(const ZooCase& zoo, std::ostream* out) {
  *out << zoo.model << " " << to_string(zoo.input) << " on " << to_string(zoo.plan)
       << (zoo.by_library ? " by library kernels" : "");
}

class ZooBattery : public testing::TestWithParam<ZooCase> {};

TEST_P(ZooBattery, EqualsTheOracle) {
  const ZooCase& zoo = GetParam();
  std::optional<LibraryKernels> switched_on;
  if (zoo.by_library) switched_on.emplace();
  VerifyOptions options;
  options.plan = zoo.plan;
  options.optimiser = zoo.optimiser;
  options.steps = zoo.steps;
  options.device = device_under_test();
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

/// Each model once.
std::vector<ZooCase> by_library(const std::vector<ZooFamily>& families) {
  std::vector<ZooCase> all;
  for (const ZooFamily& family : families)
    all.push_back({family.model,
                   family.input,
                   {1, family.grids.front(), {}},
                   OptimiserKind::kSgd,
                   family.steps,
                   /*by_library=*/true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Grids, ZooBattery, testing::ValuesIn(on_grids(small_models())));

INSTANTIATE_TEST_SUITE_P(Published, ZooBattery, testing::ValuesIn(on_grids(published_models())));

INSTANTIATE_TEST_SUITE_P(SmallByLibrary, ZooBattery, testing::ValuesIn(by_library(small_models())));

INSTANTIATE_TEST_SUITE_P(PublishedByLibrary, ZooBattery,
                         testing::ValuesIn(by_library(published_models())));

INSTANTIATE_TEST_SUITE_P(AdamW, ZooBattery,
                         testing::Values(ZooCase{"unet2d:base=2,depth=4,classes=3",
                                                 {2, 3, 43, 38},
                                                 {1, {2, 2}, {}},
                                                 OptimiserKind::kAdamW},
                                         ZooCase{"unet2d:base=2,depth=4,classes=3",
                                                 {2, 3, 43, 38},
                                                 {1, {2, 2}, {}},
                                                 OptimiserKind::kAdamW,
                                                 2,
                                                 /*by_library=*/true},
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
