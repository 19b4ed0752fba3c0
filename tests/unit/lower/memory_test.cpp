// Memory of the lowered programs: what is kept, what is computed again, and how it falls with the
// grid.

#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

int64_t largest_peak(const Graph& graph, const Plan& plan, const LowerOptions& options = {}) {
  const Lowered lowered = lower(graph, plan, options);
  int64_t largest = 0;
  for (const Program& program : lowered.programs)
    largest = std::max(largest, simulate(program, lowered.graph, at::kFloat).peak_value_bytes);
  return largest;
}

TEST(Memory, UnetFallsWithTheGrid) {
  const Graph graph = build_model("unet2d", {1, 3, 1024, 1024});
  const double one = static_cast<double>(largest_peak(graph, {}));
  EXPECT_LE(largest_peak(graph, {1, {2, 2}, {}}) / one, 0.27);
  EXPECT_LE(largest_peak(graph, {1, {4, 4}, {}}) / one, 0.075);
}

TEST(Memory, RecomputingNormsSavesAThirdOfAUnet) {
  const Graph graph = build_model("unet2d", {1, 3, 256, 256});
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

}  // namespace
}  // namespace tessera
