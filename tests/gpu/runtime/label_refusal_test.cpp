// A GPU's step goes on with a label that is not legal: what is wrong with it is said once the step
// is over, in the words that the CPU has, and nothing has been updated.

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/loss/focal.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/refusal.h"

namespace tessera::gpu_test {
namespace {

Graph with_loss(const std::string& kind) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ValueId logits = convolution(graph, x, "conv", {.out_channels = 3, .kernel = {1}});
  const ValueId labels = add_target(graph, logits, "labels");
  if (kind == "cross_entropy") cross_entropy(graph, logits, labels, "loss");
  if (kind == "dice") dice(graph, logits, labels, "loss");
  if (kind == "sigmoid_focal") focal(graph, logits, labels, "loss");
  return graph;
}

TEST(LabelsOnGpu, AreRefusedAfterTheStep) {
  for (const std::string kind : {"cross_entropy", "dice", "sigmoid_focal"})
    for (const int64_t label : {3, -1}) {
      SCOPED_TRACE(testing::Message() << kind << " " << label);
      const Graph graph = with_loss(kind);
      const Lowering lowering(graph, {});
      run_on_threads(1, 1, /*timeout_seconds=*/60, [&](Transport& transport) {
        RankSession session(lowering, transport,
                            {.real = at::kFloat, .device = {.type = at::kCUDA}});
        int64_t corner = 0;
        bool has_updated = false;
        StepContext context;
        context.load = [&](ValueId, const Box&, at::Tensor target) {
          target.fill_(1);
          if (target.scalar_type() == at::kLong) target[0][7][7] = corner;
        };
        context.update = [&] { has_updated = true; };
        session.executor().run(context);
        const double loss = session.executor().loss();
        corner = label;
        has_updated = false;
        expect_refusal([&] { session.executor().run(context); },
                       fmt::format("[{} loss] label {} is not in [0, 3)", kind, label));
        EXPECT_FALSE(has_updated);
        corner = 0;
        session.executor().run(context);
        EXPECT_EQ(session.executor().loss(), loss);
      });
    }
}

}  // namespace
}  // namespace tessera::gpu_test
