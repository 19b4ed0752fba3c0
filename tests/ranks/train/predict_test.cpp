// Predictions on stages are those of one rank, though the first rank has none of them.

#include <mutex>

#include "tessera/data/open.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/train/predictor.h"
#include "tests/ranks/train/training.h"

namespace tessera::predict_test {
namespace {

/// The logits of the first batch, and who had how many of them.
struct Predicted {
  at::Tensor logits;
  std::vector<int64_t> elements_of_rank;
};

Predicted predict_first_batch(const Graph& graph, const Plan& plan) {
  const Lowering lowered = lower_prediction(graph, plan, at::kDouble);
  const ValueType& type = lowered.graph().type(lowered.graph().outputs()[0]);
  const auto data = open_dataset("synthetic:samples=4,classes=3", {1, 40, 36}, 5);
  Predicted predicted{at::full(type.shape(), NAN, at::kDouble),
                      std::vector<int64_t>(plan.num_ranks(), 0)};
  std::mutex mutex;
  run_on_threads(plan.num_ranks(), 1, 30, [&](Transport& transport) {
    const Program program = lowered.program(transport.rank());
    ParameterStore parameters(graph, program.parameters, 3, at::kDouble);
    predict(lowered, program, *data, &parameters, &transport, at::kDouble,
            [&](int64_t, const Box& box, const at::Tensor& logits) {
              const std::lock_guard lock(mutex);
              Operand{predicted.logits, Box::whole(type.shape())}.view(box).copy_(logits);
              predicted.elements_of_rank[transport.rank()] += box.volume();
            });
  });
  return predicted;
}

TEST(Predict, OnStagesIsPredictingOnOneRank) {
  const Graph graph = network(4);
  const Predicted one = predict_first_batch(graph, {});
  for (const ScheduleKind schedule :
       {ScheduleKind::kSequential, ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
        ScheduleKind::kZeroBubble}) {
    SCOPED_TRACE(to_string(schedule));
    const Predicted stages =
        predict_first_batch(graph, on_stages(graph, {{}, {2, 1}, {1, 2}}, 4, schedule));
    EXPECT_EQ(stages.elements_of_rank[0], 0);
    EXPECT_TRUE(stages.logits.allclose(one.logits, 1e-12, 1e-12));
  }
  const Plan gems = on_stages(graph, {{1, 2}, {1, 2}}, 2, ScheduleKind::kGems);
  EXPECT_TRUE(predict_first_batch(graph, gems).logits.allclose(one.logits, 1e-12, 1e-12));
}

}  // namespace
}  // namespace tessera::predict_test
