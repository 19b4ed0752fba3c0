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
  EXPECT_TRUE(report.ok) << report.worst << ": loss " << report.loss_rel << " output "
                         << report.output_rel << " input gradient " << report.input_grad_rel
                         << " gradient " << report.param_grad_rel << " updated "
                         << report.updated_param_rel << " buffer " << report.buffer_rel;
}

using Grids = std::vector<std::vector<int64_t>>;

struct Family {
  std::string model;
  Shape input;
  Grids grids;
  std::vector<int64_t> pieces;
  int64_t steps = 2;
};

/// Our own models, on many grids.
std::vector<Family> small_models() {
  const Grids lines{{2}, {3}, {5}};
  const Grids planes{{2, 2}, {1, 3}, {3, 2}, {4, 4}};
  const Grids solids{{2, 2, 2}, {1, 2, 3}};
  return {
      {"cnn1d:base=3,depth=3", {2, 2, 101}, lines, {4}},
      {"cnn2d:base=3,depth=3", {2, 3, 37, 41}, planes, {2, 2}},
      {"cnn3d:base=2,depth=2,norm=none", {2, 1, 11, 13, 12}, solids, {2, 2, 1}},
      {"fcn2d:width=0.02,classes=3", {2, 3, 67, 70}, planes, {4, 1}},
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"unet2d:base=2,depth=3,norm=none", {2, 1, 23, 30}, planes, {1, 4}},
      {"unet3d:base=2,depth=3", {2, 1, 13, 12, 15}, solids, {1, 2, 2}},
      {"attention_unet2d:base=2,depth=3,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"resunet2d:base=2,depth=3,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"unet2d_valid:base=2,depth=3,classes=3", {2, 1, 60, 52}, planes, {2, 2}},
      // Deep levels with fewer pixels than workers.
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 17, 16}, planes, {2, 2}},
      {"cnn2d:base=2,depth=4", {2, 3, 17, 19}, planes, {2, 2}},
      {"cnn1d:base=2,depth=4,norm=none", {2, 1, 21}, lines, {4}},
      {"unet3d:base=2,depth=3,norm=none", {2, 1, 5, 8, 7}, solids, {1, 2, 2}},
      {"attention_unet2d:base=2,depth=4", {2, 3, 17, 19}, {{3, 2}}, {2, 2}},
      {"resunet2d:base=2,depth=4", {2, 3, 17, 19}, {{3, 2}}, {2, 2}},
  };
}

/// The published classifiers at all their depth and little width, on few grids. In the deepest with
/// batch norm, gradients are so large beside the weights that the rounding of a first update shows
/// in the second step, on one worker as on many: they do one.
std::vector<Family> published_models() {
  const Grids few{{2, 2}, {1, 3}}, one{{2, 1}};
  return {
      {"alexnet:width=4,classes=3", {2, 3, 71, 95}, few, {2, 1}},
      {"vgg11:width=2,classes=3", {2, 3, 35, 49}, few, {1, 2}},
      {"vgg16:width=2,classes=3,norm=batch", {2, 3, 49, 35}, one, {2, 2}},
      {"resnet18:width=3,classes=3", {2, 3, 57, 50}, few, {2, 2}},
      {"resnet50:width=4,classes=3", {4, 3, 64, 57}, one, {1, 2}, 1},
      {"resnet110_v2:width=2,classes=3", {2, 3, 19, 16}, one, {1, 2}},
      {"resnet1001_v2:width=2,blocks=3", {2, 3, 19, 16}, few, {2, 2}},
      {"densenet121:growth=2,classes=3", {2, 3, 67, 64}, one, {1, 2}},
      {"mobilenet_v2:width=0.05,classes=3", {2, 3, 67, 64}, one, {1, 2}},
      {"inception_v3:width=2,classes=3", {2, 3, 299, 299}, one, {1, 2}, 1},
      {"inception_v3:width=2,classes=3,aux=no", {2, 3, 107, 110}, few, {1, 2}, 1},
  };
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
std::vector<ZooCase> on_grids(const std::vector<Family>& families) {
  std::vector<ZooCase> all;
  for (const Family& family : families)
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
}  // namespace tessera
