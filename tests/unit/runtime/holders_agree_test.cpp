// All holders of a parameter have the same bits, and the first that does not is named.

#include "tessera/runtime/holders_agree.h"

#include <gtest/gtest.h>

#include "tessera/comm/threads/threads.h"
#include "tessera/runtime/parameter_store.h"
#include "tests/unit/graph/two_layers.h"
#include "tests/unit/refusal.h"

namespace tessera::holders_agree_test {
namespace {

using Change = std::function<void(int rank, std::vector<at::Tensor>& parameters)>;

/// What each of the ranks throws in step 7 after `change`; empty where it throws nothing.
std::vector<std::string> complaints(const Graph& graph, const Plan& plan, const Change& change) {
  const Lowering lowering(graph, plan);
  std::vector<std::string> messages(plan.num_ranks());
  threads::run_ranks(plan.num_ranks(), [&](Transport& transport) {
    const int rank = transport.rank();
    ParameterStore store(lowering.graph(), lowering.program(rank).parameters, 1, at::kDouble);
    change(rank, store.values());
    messages[rank] = message_of<InternalError>(
        [&] { check_holders_agree(transport, lowering, store.values(), /*step=*/7); });
  });
  return messages;
}

Plan two_replicas() {
  Plan plan;
  plan.data = 2;
  return plan;
}

/// conv1 on rank 0, all else on rank 1.
Plan two_stages() {
  Plan plan;
  plan.stages = {{}, {}};
  const Graph graph = two_layers();
  for (const Node& node : graph.nodes()) plan.stage_of[node.name] = node.name == "conv1" ? 0 : 1;
  return plan;
}

/// Of the first element.
void flip_lowest_bit(const at::Tensor& parameter) {
  *static_cast<int64_t*>(parameter.data_ptr()) ^= 1;
}

TEST(HoldersAgree, WhereAllBitsAreTheSame) {
  const auto one_nan = [](int, std::vector<at::Tensor>& parameters) {
    parameters[0].view(-1)[1] = NAN;  // NaN != NaN, but its bits agree
  };
  EXPECT_EQ(complaints(two_layers(), two_replicas(), one_nan), (std::vector<std::string>(2)));
}

TEST(HoldersAgree, NotWhereOneBitDiffers) {
  const auto messages =
      complaints(two_layers(), two_replicas(), [](int rank, std::vector<at::Tensor>& parameters) {
        if (rank == 1) flip_lowest_bit(parameters[6]);
      });
  for (const std::string& message : messages)  // nobody goes on alone
    EXPECT_NE(message.find("step 7: conv2.weight of rank 1 differs from rank 0's"),
              std::string::npos)
        << message;
}

TEST(HoldersAgree, RunningStatisticsToo) {
  const auto messages =
      complaints(two_layers(), two_replicas(), [](int rank, std::vector<at::Tensor>& parameters) {
        if (rank == 0) flip_lowest_bit(parameters[5]);
      });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("norm1.running_var of rank 1 differs from rank 0's"), std::string::npos)
        << message;
}

TEST(HoldersAgree, WhereEachHasParametersOfItsOwn) {
  const auto change = [](int rank, std::vector<at::Tensor>& parameters) {
    EXPECT_EQ(parameters[0].defined(), rank == 0);
    EXPECT_EQ(parameters[6].defined(), rank == 1);
    flip_lowest_bit(parameters[rank == 0 ? 0 : 6]);  // there is nobody to differ from
  };
  EXPECT_EQ(complaints(two_layers(), two_stages(), change), (std::vector<std::string>(2)));
}

/// Both stages hold the weight of "conv"; rank 1 alone holds "head".
TEST(HoldersAgree, NotWhereOnlySomeParametersAreShared) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 2, 4, 4}));
  const ConvolutionOptions square{.out_channels = 2, .kernel = {1}, .bias = false};
  x = convolution(graph, convolution(graph, x, "conv", square), "conv", square);
  x = convolution(graph, x, "head", square);
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  Plan plan;
  plan.stages = {{}, {}};
  plan.stage_of = {{"conv", 0}, {"conv_2", 1}, {"head", 1}, {"loss", 1}};
  const auto keep = [](int, std::vector<at::Tensor>&) {};
  EXPECT_EQ(complaints(graph, plan, keep), (std::vector<std::string>(2)));
  const auto messages = complaints(graph, plan, [](int rank, std::vector<at::Tensor>& parameters) {
    if (rank == 1) flip_lowest_bit(parameters[0]);
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("conv.weight of rank 1 differs from rank 0's"), std::string::npos)
        << message;
}

}  // namespace
}  // namespace tessera::holders_agree_test
