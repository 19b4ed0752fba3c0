// Norms that a training step would leave as they are.

#include "tessera/lower/inference.h"

#include <gtest/gtest.h>

#include "tessera/zoo/zoo.h"

namespace tessera::inference_test {
namespace {

TEST(NormsInEvalMode, AreThoseThatUseRunningStatisticsAlready) {
  const Graph training = build_model("unet2d:base=2,depth=2", {1, 3, 16, 16});
  EXPECT_TRUE(norms_in_eval_mode(training).empty());
  const std::vector<std::string> frozen = norms_in_eval_mode(for_inference(training));
  size_t num_norms = 0;
  for (const Node& node : training.nodes()) num_norms += node.op->kind() == "batch_norm" ? 1 : 0;
  EXPECT_GT(num_norms, 0u);
  EXPECT_EQ(frozen.size(), num_norms);
}

/// Without statistics to run there is one mode only.
TEST(NormsInEvalMode, AreNoneOfOtherNorms) {
  const Graph graph = build_model("unet2d:base=2,depth=2,norm=none", {1, 3, 16, 16});
  EXPECT_TRUE(norms_in_eval_mode(for_inference(graph)).empty());
}

}  // namespace
}  // namespace tessera::inference_test
