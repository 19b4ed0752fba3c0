#include "tessera/ops/pointwise/gradient_reversal.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::gradient_reversal_test {
namespace {

Graph reversed(const Shape& shape, const StepFunction& lambda) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image(shape));
  gradient_reversal(graph, x, "reversal", lambda);
  return graph;
}

// The harness runs step 3.
TEST(GradientReversal, MatchesAutograd) {
  for (const StepFunction& lambda :
       {StepFunction(1), StepFunction(0.3, 3), StepFunction(0.3, 4), StepFunction(1, 1, 7)})
    for (uint64_t seed = 0; seed < 4; ++seed)
      check_graph_node(reversed({3, 2, 7, 9}, lambda), seed);
}

TEST(GradientReversal, TurnsTheGradientRound) {
  const Graph graph = reversed({1, 1, 2}, 0.5);
  KernelArgs args;
  args.types = &graph.node(0).types;
  args.out_box = Box::whole({1, 1, 2});
  args.grad_output = {at::ones({1, 1, 2}), args.out_box};
  args.grad_inputs = {{at::empty({1, 1, 2}), args.out_box}};
  graph.node(0).op->input_gradient(args);
  EXPECT_TRUE(at::equal(args.grad_inputs[0].tensor, at::full({1, 1, 2}, -0.5)));
}

TEST(GradientReversal, RefusesLabels) {
  Graph graph;
  ValueType labels = ValueType::image({1, 1, 2});
  labels.element = Element::kIndex;
  const ValueId x = graph.add_input("x", labels);
  EXPECT_THROW(gradient_reversal(graph, x, "reversal"), InvalidInput);
}

}  // namespace
}  // namespace tessera::gradient_reversal_test
