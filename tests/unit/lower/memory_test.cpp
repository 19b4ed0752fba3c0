// Memory of the lowered programs: what is kept, what is computed again, and how it falls with the
// grid.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera::memory_test {
namespace {

/// Of the values: kernels get what they cannot do without.
int64_t largest_peak(const Graph& graph, Plan plan, const LowerOptions& options = {}) {
  plan.scratch_bytes = 0;
  const Lowered lowered = lower(graph, plan, options);
  int64_t largest = 0;
  for (const Program& program : lowered.programs)
    largest = std::max(largest, simulate(program, at::kFloat).peak_value_bytes);
  return largest;
}

TEST(Memory, UnetFallsWithTheGrid) {
  const Graph graph = build_model("unet2d", {1, 3, 1024, 1024});
  const double one = static_cast<double>(largest_peak(graph, {}));
  EXPECT_LE(largest_peak(graph, {1, {2, 2}, {}}) / one, 0.27);
  EXPECT_LE(largest_peak(graph, {1, {4, 4}, {}}) / one, 0.08);  // each has all weights' gradients
}

TEST(Memory, RecomputingNormsSavesAThirdOfAUnet) {
  const Graph graph = build_model("unet2d", {1, 3, 1024, 1024});  // activations are most of it
  LowerOptions keep;
  keep.recompute = false;
  EXPECT_LE(static_cast<double>(largest_peak(graph, {})),
            0.67 * static_cast<double>(largest_peak(graph, {}, keep)));
}

TEST(Memory, ForwardAloneKeepsLittle) {
  const Graph graph = build_model("unet2d", {1, 3, 256, 256});
  LowerOptions forward;
  forward.step = StepKind::kForward;
  EXPECT_LE(largest_peak(graph, {}, forward), largest_peak(graph, {}) / 2);
}

/// Peaks of four stages, one convolution each, with micro-batches of two samples.
std::vector<int64_t> peaks_of_four_stages(int64_t micro_batches, ScheduleKind schedule) {
  Graph graph;
  Plan plan;
  ValueId x = graph.add_input("image", ValueType::image({2 * micro_batches, 4, 32, 32}));
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("conv{}", i);
    x = convolution(graph, x, name, {4, {3}, {1}, {1}, {1}});
    plan.stage_of[name] = i;
  }
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  plan.stage_of["loss"] = 3;
  plan.stages.resize(4);
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  const Lowered lowered = lower(graph, plan);
  std::vector<int64_t> peaks;
  for (const Program& program : lowered.programs)
    peaks.push_back(simulate(program, at::kFloat).peak_value_bytes);
  return peaks;
}

/// Stage s of p has p - s micro-batches in flight, however many there are.
TEST(Memory, OneForwardOneBackwardHoldsAsManyMicroBatchesAsStages) {
  const auto peaks = [](int64_t micro_batches) {
    return peaks_of_four_stages(micro_batches, ScheduleKind::kOneForwardOneBackward);
  };
  for (int64_t micro_batches : {1, 2, 3})
    EXPECT_LT(peaks(micro_batches)[0], peaks(micro_batches + 1)[0]) << micro_batches;
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(peaks(5)[stage], peaks(8)[stage]) << stage;
    EXPECT_EQ(peaks(5)[stage], peaks(13)[stage]) << stage;
  }
  EXPECT_LE(peaks(8)[0], 4 * peaks(1)[0]);
  EXPECT_LT(peaks(8)[3], peaks(8)[0]);
  const auto first_of_gpipe = [](int64_t micro_batches) {
    return static_cast<double>(peaks_of_four_stages(micro_batches, ScheduleKind::kGpipe)[0]);
  };
  EXPECT_GE(first_of_gpipe(8), 1.5 * first_of_gpipe(4));
}

}  // namespace
}  // namespace tessera::memory_test
