// Plans whose numbers are legal one by one, and too much together.

#include "tessera/lower/workload.h"

#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/plan/limits.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::workload_test {
namespace {

Graph network(const Shape& input) { return build_model("cnn2d:base=2,depth=2,norm=none", input); }

TEST(Workload, CountsWhatLoweringMakes) {
  const Graph graph = network({8, 1, 64, 64});
  const int64_t nodes = std::ssize(graph.nodes()), values = std::ssize(graph.values());
  Plan plan{2, {2, 2}, {4, 4}};
  plan.micro_batches = 2;
  const Workload work = workload(graph, plan);
  EXPECT_EQ(work.placed, values * 8 * 16 * 2);
  EXPECT_EQ(work.of_program, nodes * 16 * 2);
  EXPECT_EQ(work.lowered, nodes * 8 * 16 * 2);
  plan.space = {16, 16};  // too many to be proved together: one program at a time
  EXPECT_EQ(workload(graph, plan).lowered, nodes * 16 * 2);
}

/// Each ends with the number and the limit, before anything is allocated for it.
TEST(Workload, RefusesWhatNoMachineCanPlan) {
  const auto lower_on = [](const Shape& input, const Plan& plan) {
    return [=] { Lowering(network(input), plan); };
  };
  expect_refusal(lower_on({1, 1, 4096, 4096}, {1, {}, {4096, 4096}}), "at most 8388608");
  expect_refusal(lower_on({1, 1, 1024, 1024}, {1, {}, {400, 400}}), "at most 524288");
  Plan micro;
  micro.micro_batches = kMostParts;
  expect_refusal(lower_on({kMostParts, 1, 16, 16}, micro), "1048576 micro-batches");
  expect_refusal(
      [&] {
        exchanged_elements(network({1, 1, 4096, 4096}), {1, {}, {4096, 4096}});
      },
      "pieces to place");
}

TEST(Workload, ManyKindsOfRanksAreRefused) {
  const Workload work{.placed = 1, .of_program = 100, .lowered = 100};
  check_kinds(work, 5000);
  expect_refusal([&] { check_kinds(work, 6000); }, "6000 kinds");
}

/// The product of a piece and the micro-batches had 32 bits: 65,536 of them ended in a crash.
TEST(Workload, ManyMicroBatchesAreToldApart) {
  constexpr int kMany = 65536;
  std::vector<Piece> pieces;
  for (int m = 0; m < kMany; ++m) pieces.push_back({Box{{m, m + 1}, {0, 1}}, 0});
  ValuePlan value;
  value.layout = Layout({kMany, 1}, std::move(pieces));
  for (int m : {0, 1, 32767, 32768, kMany - 1}) EXPECT_EQ(value.micro_batch_of(m, kMany), m);
}

}  // namespace
}  // namespace tessera::workload_test
