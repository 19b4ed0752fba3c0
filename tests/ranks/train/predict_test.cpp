// Predictions on stages are those of one rank, though the first rank has none of them.

#include <mutex>

#include "tessera/data/open.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/train/label_maps.h"
#include "tessera/train/predictor.h"
#include "tests/ranks/train/training.h"

namespace tessera::predict_test {
namespace {

/// The logits of the first batch, and who had how many of them.
struct Predicted {
  at::Tensor logits, probabilities;
  std::vector<int64_t> elements_of_rank;
};

Predicted predict_first_batch(const Graph& graph, const Plan& plan,
                              const PredictOptions& options = {}) {
  const Lowering lowered = lower_prediction(graph, plan, at::kDouble);
  const ValueType& type = lowered.graph().type(lowered.graph().outputs()[0]);
  const auto data = open_dataset("synthetic:samples=4,classes=3", {1, 40, 36}, 5);
  Predicted predicted{at::full(type.shape(), NAN, at::kDouble),
                      at::full(type.shape(), NAN, at::kDouble),
                      std::vector<int64_t>(plan.num_ranks(), 0)};
  std::mutex mutex;
  run_on_threads(plan.num_ranks(), 1, 30, [&](Transport& transport) {
    Program program = lowered.program(transport.rank());
    ParameterStore parameters(graph, program.parameters, 3, at::kDouble);
    Predictor predictor(lowered, std::move(program), &parameters, &transport, at::kDouble);
    const auto take = [&](int64_t, const Box& box, const PredictedBox& part) {
      const std::lock_guard lock(mutex);
      const auto copy = [&](const at::Tensor& to, const at::Tensor& from) {
        Operand{to, Box::whole(type.shape())}.view(box).copy_(from);
      };
      copy(predicted.logits, part.raw);
      if (options.probabilities) copy(predicted.probabilities, part.probabilities);
      predicted.elements_of_rank[transport.rank()] += box.volume();
    };
    predictor.run_batch(*data, 0, options, take);
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

// Every rank has boxes of the turned image that belong to others; uneven cuts, so that a mirrored
// piece meets several.
TEST(Predict, FromAllSidesIsTheMeanOfTheOracleOnAnyGrid) {
  const Graph graph = network(4);
  const PredictOptions flips{.windows = {}, .flips = true, .probabilities = true};
  const Predicted one = predict_first_batch(graph, {}, flips);
  const Predicted plain = predict_first_batch(graph, {}, {.probabilities = true});
  EXPECT_FALSE(one.probabilities.allclose(plain.probabilities, 1e-6, 1e-6));
  for (const Plan& plan :
       {on_grid({2, 2}), on_grid({3, 1}), on_grid({1, 3}, 2), on_grid({2, 1}, 1, {2, 3}),
        on_stages(graph, {{}, {2, 1}}, 2, ScheduleKind::kOneForwardOneBackward)}) {
    SCOPED_TRACE(to_string(plan));
    const Predicted many = predict_first_batch(graph, plan, flips);
    EXPECT_TRUE(many.probabilities.allclose(one.probabilities, 1e-12, 1e-12));
    EXPECT_TRUE(many.logits.allclose(one.logits, 1e-12, 1e-12));
  }
}

/// The maps that rank 0 gets of three samples in a batch of four.
std::vector<at::Tensor> label_maps(const Graph& graph, const Plan& plan) {
  const Lowering lowered = lower_prediction(graph, plan, at::kDouble);
  const auto data = open_dataset("synthetic:samples=3,classes=3", {1, 40, 36}, 5);
  std::vector<at::Tensor> maps;
  run_on_threads(plan.num_ranks(), 1, 30, [&](Transport& transport) {
    Program program = lowered.program(transport.rank());
    ParameterStore parameters(graph, program.parameters, 3, at::kDouble);
    Predictor predictor(lowered, std::move(program), &parameters, &transport, at::kDouble);
    LabelMaps batch({40, 36}, transport);
    predictor.run_batch(
        *data, 0, {},
        [&](int64_t, const Box&, const PredictedBox& part) {
          batch.add(classes_of_logits(part.raw));
        },
        [&](const std::vector<Piece>& kept) { batch.note_window(kept); });
    for (int64_t entry = 0; entry < 3; ++entry) {
      const at::Tensor map = batch.collect(entry);
      EXPECT_EQ(map.defined(), transport.rank() == 0);
      if (map.defined()) maps.push_back(map);
    }
  });
  return maps;
}

// Pieces cut the batch and the image, and the last sample only fills the batch up.
TEST(Predict, LabelMapsAreWholeAndOneForEachSample) {
  const Graph graph = network(4);
  const at::Tensor logits = predict_first_batch(graph, {}).logits;
  for (const Plan& plan :
       {Plan{}, on_grid({2, 2}), on_grid({1, 3}, 2), on_grid({2, 1}, 1, {2, 3}),
        on_stages(graph, {{}, {2, 1}}, 2, ScheduleKind::kOneForwardOneBackward)}) {
    SCOPED_TRACE(to_string(plan));
    const std::vector<at::Tensor> maps = label_maps(graph, plan);
    ASSERT_EQ(maps.size(), 3u);
    for (int64_t sample = 0; sample < 3; ++sample)
      EXPECT_TRUE(at::equal(maps[sample], logits[sample].argmax(0)));
  }
}

// A logit above 0 whose probability rounds to a half is class 1 by itself; means over mirror images
// decide by probabilities, and there the logits do not count.
TEST(Predict, OneChannelTellsTwoClassesApart) {
  const at::Tensor logits = at::full({1, 1, 2}, 1e-9, at::kFloat);
  const at::Tensor ones = at::ones({1, 2}, at::kLong);
  EXPECT_TRUE(at::equal(classes_of_logits(logits), ones));
  EXPECT_TRUE(at::equal(classes_of_probabilities(at::sigmoid(logits)), 1 - ones));
}

}  // namespace
}  // namespace tessera::predict_test
