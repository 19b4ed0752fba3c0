// Copies in float32 for kernels that need them, where values are narrow.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/lower/lower.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera::widen_test {
namespace {

/// An operator without narrow kernels between two convolutions.
Graph network() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ConvolutionOptions same{.out_channels = 2, .kernel = {3}, .padding = {1}};
  x = convolution(graph, x, "first", same);
  x = pointwise(graph, x, "gelu", {PointwiseFunction::kGelu});
  x = convolution(graph, x, "last", same);
  graph.mark_output(x);
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  return graph;
}

Program program_of(const Graph& graph, at::ScalarType real) {
  return Lowering(graph, {}, {.step = StepKind::kTrain, .keep_outputs = true, .real = real})
      .program(0);
}

TEST(Widen, GivesKernelsOperandsOfOneType) {
  const Graph graph = network();
  const Program program = program_of(graph, at::kBFloat16);
  int runs = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto* run = std::get_if<tessera::Run>(&instruction);
        run != nullptr && run->piece >= 0) {
      std::set<ElementType> types;
      for (const Argument& argument : run->arguments)
        for (Role role : {Role::kInput, Role::kOutput, Role::kGradOutput, Role::kGradInput})
          if (argument.role == role) types.insert(program.buffers[argument.view.buffer].element);
      EXPECT_LE(types.size(), 1u) << graph.node(run->node).name;
      ++runs;
    }
  EXPECT_GT(runs, 6);
}

TEST(Widen, CopiesWhatIsReadAndWhatIsWritten) {
  const Graph graph = network();
  const Program program = program_of(graph, at::kBFloat16);
  const auto name = [&](const View& view) { return program.buffers[view.buffer].name; };
  std::vector<std::string> lines;  // copies, and where forward of the GELU stands
  for (const Instruction& instruction : program.instructions) {
    if (const auto* copy = std::get_if<Copy>(&instruction))
      lines.push_back(name(copy->from) + " -> " + name(copy->to));
    const auto* run = std::get_if<tessera::Run>(&instruction);
    if (run != nullptr && run->phase == Phase::kForward && graph.node(run->node).name == "gelu")
      lines.push_back("run");
  }
  const auto at = std::ranges::find(lines, "run");
  ASSERT_TRUE(at != lines.begin() && at != lines.end() && at + 1 != lines.end());
  EXPECT_EQ(*(at - 1), "first -> first in float32");
  EXPECT_EQ(*(at + 1), "gelu in float32 -> gelu");
}

TEST(Widen, KeepsWeightsOutputsAndTargetsWide) {
  const Program program = program_of(network(), at::kBFloat16);
  std::map<std::string, ElementType> type;
  for (const Buffer& buffer : program.buffers) type[buffer.name] = buffer.element;
  for (const char* wide : {"first.weight", "last", "target", "bucket 0"})
    EXPECT_EQ(type.at(wide), ElementType::kWide) << wide;
  for (const char* narrow : {"image", "first", "gelu", "first gradient", "last gradient"})
    EXPECT_EQ(type.at(narrow), ElementType::kReal) << narrow;
}

TEST(Widen, LeavesOtherRunsAlone) {
  for (const Buffer& buffer : program_of(network(), at::kFloat).buffers)
    EXPECT_EQ(buffer.name.find("in float32"), std::string::npos);
}

/// Values take half; weights and what optimisers keep are as large as ever.
TEST(Widen, HalvesWhatValuesTake) {
  const Graph graph = build_model("unet2d:base=8", {1, 3, 128, 128});
  const auto measure = [&](at::ScalarType real) {
    const Program program =
        Lowering(graph, {}, {.step = StepKind::kTrain, .optimiser = {1}, .real = real}).program(0);
    return simulate(program, real);
  };
  const RankForecast narrow = measure(at::kBFloat16), wide = measure(at::kFloat);
  EXPECT_EQ(narrow.parameter_bytes, wide.parameter_bytes);
  EXPECT_LT(static_cast<double>(narrow.peak_value_bytes),
            0.8 * static_cast<double>(wide.peak_value_bytes));
}

}  // namespace
}  // namespace tessera::widen_test
