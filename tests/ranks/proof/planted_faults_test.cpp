// In a deep network with batch norm one rounding grows beyond the fixed limit after an update. The
// proof passes there without a fault, and still finds each that is planted: a message that is wrong
// in the eighth digit, statistics that are, a mask that is drawn with the wrong index.

#include <gtest/gtest.h>

#include <map>

#include "tessera/base/error.h"
#include "tessera/loss/add_losses.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/proof/verify.h"
#include "tessera/runtime/rank_session.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/proof/corrupting.h"
#include "tests/ranks/proof/wrong_ops.h"

namespace tessera::planted_faults_test {
namespace {

constexpr int kLayers = 30, kChannels = 6;
constexpr int64_t kBatch = 2, kRows = 10, kColumns = 14;

/// Convolution, batch norm and ReLU, again and again, with a dropout in the middle: nothing damps
/// what grows from layer to layer.
Graph network_where_rounding_grows() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({kBatch, 3, kRows, kColumns}));
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string number = std::to_string(layer);
    x = convolution(graph, x, "conv" + number,
                    {.out_channels = kChannels, .kernel = {3}, .padding = {1}, .bias = false});
    x = relu(graph, batch_norm(graph, x, "norm" + number), "relu" + number);
    if (layer == kLayers / 2) x = dropout(graph, x, "drop", {.probability = 0.2});
  }
  graph.mark_output(convolution(graph, x, "head", {.out_channels = 2, .kernel = {1}}));
  add_losses(graph, {.spec = "cross_entropy"});
  return graph;
}

/// The same network with one operator replaced.
template <class Wrong, class... Settings>
Graph network_with_wrong(const std::string& name, const Settings&... settings) {
  Graph wrong;
  const Graph right = network_where_rounding_grows();
  for (ValueId input : right.inputs()) wrong.add_input(right.value(input).name, right.type(input));
  for (const Parameter& parameter : right.parameters()) wrong.add_parameter(parameter);
  std::map<ValueId, ValueId> now;
  for (size_t i = 0; i < right.inputs().size(); ++i) now[right.inputs()[i]] = wrong.inputs()[i];
  for (const Node& node : right.nodes()) {
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(now.at(input));
    std::shared_ptr<const Op> op = node.op;
    if (node.name == name) op = std::make_shared<Wrong>(op, settings...);
    now[node.output] = wrong.add_node(node.name, op, inputs, node.parameters, node.buffers);
  }
  for (ValueId output : right.outputs()) wrong.mark_output(now.at(output));
  return wrong;
}

VerifyOptions on_two_ranks(int64_t steps) {
  VerifyOptions options;
  options.plan.space = {1, 2};
  options.steps = steps;
  options.learning_rate = 1;
  return options;
}

/// The proof with a fault in what rank 1 sends; `seen` is how many messages had its size.
VerifyReport verify_with(const PlantedFault& fault, int64_t steps, int* seen) {
  const Graph graph = network_where_rounding_grows();
  const VerifyOptions options = on_two_ranks(steps);
  const Lowering lowering(graph, options.plan, verified_step(options));
  return report_from_threads<VerifyReport>(
      options.plan.num_ranks(), 1, options.timeout_seconds, [&](Transport& transport) {
        if (transport.rank() != 1) return verify(graph, lowering, options, transport);
        CorruptingTransport corrupting(transport, fault);
        VerifyReport report = verify(graph, lowering, options, corrupting);
        *seen = corrupting.seen();
        return report;
      });
}

constexpr int64_t kHaloBytes = kBatch * kChannels * kRows * 8;  // a column
constexpr int64_t kRowBytes = 3 * kChannels * 8;                // count, mean and M2

void expect_found(const Graph& graph) {
  for (const int64_t steps : {1, 2}) {
    const VerifyReport report = verify(graph, on_two_ranks(steps));
    EXPECT_FALSE(report.ok) << differences(report);
    EXPECT_FALSE(report.undecided) << report.failure;
  }
}

void expect_found(const PlantedFault& fault) {
  for (const int64_t steps : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} bytes, message {}, {} steps", fault.bytes, fault.nth, steps));
    int seen = 0;
    const VerifyReport report = verify_with(fault, steps, &seen);
    ASSERT_GT(seen, fault.nth) << "nothing was planted";
    EXPECT_FALSE(report.ok) << differences(report);
    EXPECT_FALSE(report.undecided) << report.failure;
  }
}

TEST(PlantedFaults, WithoutOneTheNetworkIsJudgedByItsConditioning) {
  const VerifyReport report = verify(network_where_rounding_grows(), on_two_ranks(2));
  EXPECT_TRUE(report.ok) << report.failure;
  ASSERT_EQ(report.sensitivities.size(), 2u) << "rounding must grow here: " << differences(report);
  EXPECT_FALSE(report.sensitivities[0].raises_limits) << report.sensitivities[0].largest;
  EXPECT_TRUE(report.sensitivities[1].raises_limits) << report.sensitivities[1].largest;
  EXPECT_GT(report.param_grad_rel, 1e-10);
  EXPECT_LT(report.sensitivities[0].gradient, report.sensitivities[1].gradient);
  EXPECT_EQ(report.failure, "");
}

TEST(PlantedFaults, AHaloOfAnyLayerThatIsWrongInTheEighthDigit) {
  for (int layer : {0, 1, kLayers / 2, kLayers - 2}) expect_found({kHaloBytes, layer});
}

TEST(PlantedFaults, AHaloOfAGradient) { expect_found({kHaloBytes, kLayers + 3}); }

/// All ranks use the same wrong statistics.
TEST(PlantedFaults, AStatistic) {
  using enum WrongStatistics::Where;
  for (const auto where : {kForward, kBackward})
    for (const char* norm : {"norm0", "norm15", "norm29"})
      expect_found(network_with_wrong<WrongStatistics>(norm, where));
}

/// One rank alone gets a wrong one, so its running statistics are not those of the others.
TEST(PlantedFaults, AStatisticOfOneRank) {
  int seen = 0;
  EXPECT_THROW(verify_with({kRowBytes, 3}, 1, &seen), InternalError);
}

/// Half of the bucket goes to the other rank to be added there.
TEST(PlantedFaults, AGradientBucket) {
  const Graph graph = network_where_rounding_grows();
  const int64_t half = (graph.num_trainable() + 1) / 2 * 8;
  expect_found({half, 0});
}

/// The sum that comes back is wrong on one rank alone: the holders of a weight do not agree.
TEST(PlantedFaults, AReducedBucketOfOneRank) {
  const Graph graph = network_where_rounding_grows();
  const int64_t half = (graph.num_trainable() + 1) / 2 * 8;
  int seen = 0;
  EXPECT_THROW(verify_with({half, 1}, 1, &seen), InternalError);
}

TEST(PlantedFaults, AMaskThatIsDrawnWithAnotherIndex) {
  expect_found(network_with_wrong<ShiftedDropout>("drop"));
}

/// Without a fault in it, a wrapped operator is right: it is the fault that was found above.
TEST(PlantedFaults, AWrappedOperatorIsRight) {
  for (const char* name : {"norm15", "drop"}) {
    const VerifyReport report = verify(network_with_wrong<WrappedOp>(name), on_two_ranks(2));
    EXPECT_TRUE(report.ok) << report.failure;
  }
}

}  // namespace
}  // namespace tessera::planted_faults_test
