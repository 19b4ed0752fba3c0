// Every model of the zoo on every kind of grid, in float64 against the oracle: grids that do not
// divide the image, replicas, pieces, and images whose deep levels have fewer pixels than workers.

#include <gtest/gtest.h>

#include "tessera/trial/verify.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

struct ZooCase {
  std::string model;
  Shape input;
  Plan plan;
  OptimiserKind optimiser = OptimiserKind::kSgd;
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
  const VerifyReport report = verify(build_model(zoo.model, zoo.input), options);
  EXPECT_TRUE(report.ok) << report.worst << ": loss " << report.loss_rel << " output "
                         << report.output_rel << " input gradient " << report.input_grad_rel
                         << " gradient " << report.param_grad_rel << " updated "
                         << report.updated_param_rel << " buffer " << report.buffer_rel;
}

/// Each grid plain, with two replicas, and with four pieces a rank.
std::vector<ZooCase> cases() {
  struct Family {
    std::string model;
    Shape input;
    std::vector<std::vector<int64_t>> grids;
    std::vector<int64_t> pieces;
  };
  const std::vector<std::vector<int64_t>> lines{{2}, {3}, {5}};
  const std::vector<std::vector<int64_t>> planes{{2, 2}, {1, 3}, {3, 2}, {4, 4}};
  const std::vector<std::vector<int64_t>> solids{{2, 2, 2}, {1, 2, 3}};
  const std::vector<Family> families{
      {"cnn1d:base=3,depth=3", {2, 2, 101}, lines, {4}},
      {"cnn2d:base=3,depth=3", {2, 3, 37, 41}, planes, {2, 2}},
      {"cnn3d:base=2,depth=2,norm=none", {2, 1, 11, 13, 12}, solids, {2, 2, 1}},
      {"fcn2d:width=0.02,classes=3", {2, 3, 67, 70}, planes, {4, 1}},
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"unet2d:base=2,depth=3,norm=none", {2, 1, 23, 30}, planes, {1, 4}},
      {"unet3d:base=2,depth=3", {2, 1, 13, 12, 15}, solids, {1, 2, 2}},
      // Deep levels with fewer pixels than workers.
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 17, 16}, planes, {2, 2}},
      {"cnn2d:base=2,depth=4", {2, 3, 17, 19}, planes, {2, 2}},
      {"cnn1d:base=2,depth=4,norm=none", {2, 1, 21}, lines, {4}},
      {"unet3d:base=2,depth=3,norm=none", {2, 1, 5, 8, 7}, solids, {1, 2, 2}},
  };
  std::vector<ZooCase> all;
  for (const Family& family : families)
    for (const std::vector<int64_t>& grid : family.grids) {
      all.push_back({family.model, family.input, {1, grid, {}}});
      all.push_back({family.model, family.input, {2, grid, {}}});
      all.push_back({family.model, family.input, {1, grid, family.pieces}});
    }
  all.push_back({families[4].model, families[4].input, {1, {2, 2}, {}}, OptimiserKind::kAdamW});
  all.push_back({families[1].model, families[1].input, {2, {1, 3}, {}}, OptimiserKind::kAdamW});
  all.push_back({families[6].model, families[6].input, {1, {1, 2, 3}, {}}, OptimiserKind::kAdamW});
  // A grid that does not fit (more parts than pixels) is refused; drop what the image cannot hold.
  std::erase_if(all, [](const ZooCase& zoo) {
    try {
      check_plan(zoo.plan, ValueType::image(zoo.input));
      return false;
    } catch (const std::exception&) {
      return true;
    }
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Grids, ZooBattery, testing::ValuesIn(cases()));

}  // namespace
}  // namespace tessera
