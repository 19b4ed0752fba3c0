// The passes that can be left out are about speed and memory alone: without them the numbers are
// the oracle's, too.

#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/lower/rewrite.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"

namespace tessera::without_rewrites_test {
namespace {

std::vector<std::string> all_optional() {
  std::vector<std::string> names;
  for (const Rewrite& each : rewrites())
    if (each.kind == Rewrite::Kind::kOptional) names.push_back(each.name);
  return names;
}

struct Case {
  std::string model;
  Shape input;
  Plan plan;
  std::string fused_kind;  // of an operator that is there with the passes, and not without
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.model << " on " << to_string(each.plan);
}

class WithoutRewrites : public testing::TestWithParam<Case> {};

bool has_kind(const Lowered& lowered, const std::string& kind) {
  for (const Node& node : lowered.graph.nodes())
    if (node.op->kind() == kind) return true;
  return false;
}

TEST_P(WithoutRewrites, EqualsTheOracle) {
  const auto& [model, input, plan, fused_kind] = GetParam();
  const Graph graph = build_model(model, input);
  VerifyOptions options;
  options.plan = plan;
  EXPECT_TRUE(has_kind(lower(graph, plan, verified_step(options)), fused_kind));
  options.without_rewrites = all_optional();
  EXPECT_FALSE(has_kind(lower(graph, plan, verified_step(options)), fused_kind));
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << differences(report);
}

// The classifier has fewer samples than ranks: some have no row of the linear layer.
INSTANTIATE_TEST_SUITE_P(
    , WithoutRewrites,
    testing::Values(
        Case{"unet2d:base=2,depth=3", {2, 3, 21, 18}, {1, {2, 2}, {}}, "batch_norm_relu"},
        Case{"unet2d:base=2,depth=3", {2, 3, 24, 16}, {2, {1, 2}, {2, 1}}, "batch_norm_relu"},
        Case{"resnet18:width=2", {2, 3, 64, 64}, {1, {2, 1}, {}}, "batch_norm_add_relu"},
        Case{"vgg11:width=2", {2, 3, 64, 64}, {1, {2, 2}, {}}, "partial_linear"}));

}  // namespace
}  // namespace tessera::without_rewrites_test
