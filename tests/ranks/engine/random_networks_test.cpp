// Hundreds of random networks on random placements against the autograd oracle. A failure prints
// its seed; `TESSERA_SEED=<seed> engine_test --gtest_filter=<test>` runs that one
// alone, with its network and its difference.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "tessera/kernels/library_kernels.h"
#include "tessera/proof/verify.h"
#include "tests/ranks/engine/device_under_test.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/engine/random_domains.h"
#include "tests/ranks/engine/random_stages.h"

namespace tessera::random_networks_test {
namespace {

constexpr uint64_t kNumCases = 600;
constexpr uint64_t kNumLibraryCases = 60;

/// The gradient of a bias before a norm is zero, and what is left of it is the rounding of terms
/// that cancel. Where the channel is nearly constant these terms are large, and the remainder can
/// pass 1e-10 of the scale by which gradients are judged. Over all gradients together it is still
/// nothing.
bool differs_by_rounding_only(const VerifyReport& report) {
  for (double difference : {report.loss_rel, report.output_rel, report.input_grad_rel,
                            report.updated_param_rel, report.buffer_rel})
    if (!(difference <= 1e-10)) return false;
  return report.param_grad_rel <= 1e-9 && report.param_grad_l2 <= 1e-12;
}

void check(const RandomCase& random, uint64_t seed, const DeviceChoice& device) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  SCOPED_TRACE(fmt::format("replay: TESSERA_SEED={} engine_test --gtest_filter='{}.{}'\n{}", seed,
                           test.test_suite_name(), test.name(), random.description));
  VerifyOptions options;
  options.plan = random.plan;
  options.seed = seed;
  options.recompute = seed % 4 != 0;
  options.clip_norm = seed % 5 == 0 ? 0.1 : 0;
  options.timeout_seconds = 30;
  options.device = device;
  try {
    const VerifyReport report = verify(random.graph, options);
    EXPECT_TRUE(report.ok || differs_by_rounding_only(report)) << differences(report);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

/// Calls make(seed) for the seed that is to be replayed, or for all.
template <class Make>
void check_all(const Make& make, uint64_t last = kNumCases,
               std::optional<ImageLayout> layout = std::nullopt) {
  uint64_t first = 1;
  if (const char* seed = std::getenv("TESSERA_SEED"))
    first = last = std::strtoull(seed, nullptr, 10);
  for (uint64_t seed = first; seed <= last; ++seed) {
    DeviceChoice device = device_under_test(seed);
    if (layout) device.layout = layout;
    check(make(seed), seed, device);
  }
}

TEST(RandomNetworks, EqualTheOracle) { check_all(random_case); }

/// On stages: any node anywhere, grids of their own, micro-batches, every schedule.
TEST(RandomNetworks, EqualTheOracleOnStages) { check_all(random_stages_case); }

/// Of several domains: an image and losses for each, shared weights, placed by domains or anyhow.
TEST(RandomNetworks, EqualTheOracleOnDomains) { check_all(random_domains_case); }

/// With the kernels that devices without loops of our own run.
TEST(RandomNetworks, EqualTheOracleByLibraryKernels) {
  const LibraryKernels switched_on;
  check_all(random_case, kNumLibraryCases);
  check_all(random_stages_case, kNumLibraryCases);
  check_all(random_domains_case, kNumLibraryCases);
}

/// With images in the order that a GPU is faster with, by either kind of kernels.
TEST(RandomNetworks, EqualTheOracleInChannelsLast) {
  for (const bool by_library : {false, true}) {
    std::optional<LibraryKernels> switched_on;
    if (by_library) switched_on.emplace();
    check_all(random_case, kNumLibraryCases, ImageLayout::kChannelsLast);
    check_all(random_stages_case, kNumLibraryCases, ImageLayout::kChannelsLast);
    check_all(random_domains_case, kNumLibraryCases, ImageLayout::kChannelsLast);
  }
}

/// Every family of these kernels has its part.
TEST(RandomNetworks, ByLibraryKernelsAreOfAllKinds) {
  std::set<std::string> kinds;
  for (uint64_t seed = 1; seed <= kNumLibraryCases; ++seed)
    for (const RandomCase& random : {random_case(seed), random_stages_case(seed)})
      for (const Node& node : random.graph.nodes()) kinds.insert(node.op->kind());
  for (const char* kind :
       {"convolution", "transposed_convolution", "linear", "max_pool", "average_pool",
        "adaptive_average_pool", "adaptive_max_pool", "max_unpool", "interpolate", "softmax",
        "dropout", "prelu", "channel_sum", "channel_max", "multiply", "gelu", "resize_labels",
        "dice"})
    EXPECT_TRUE(kinds.contains(kind))
        << kind << " is not among " << fmt::format("{}", fmt::join(kinds, " "));
}

TEST(RandomNetworks, OnDomainsAreOfAllKinds) {
  std::map<std::string, uint64_t> count;
  for (uint64_t seed = 1; seed <= kNumCases; ++seed) {
    const RandomCase random = random_domains_case(seed);
    std::set<int64_t> batches;
    std::set<std::string> kinds;
    for (ValueId input : random.graph.inputs()) batches.insert(random.graph.type(input).batch());
    for (const Node& node : random.graph.nodes()) kinds.insert(node.op->kind());
    for (const std::string& kind : kinds) ++count[kind];
    count["batches that differ"] += batches.size() > 1;
    count["several micro-batches"] += random.plan.micro_batches > 1;
    count["data 2"] += random.plan.data == 2;
    count["grids"] += random.plan.ranks_per_replica() > random.plan.num_stages();
    count["pieces"] += random.plan.pieces_along(0) * random.plan.pieces_along(1) > 1;
  }
  for (const char* kind :
       {"difference", "domain_cross_entropy", "kernel_mean", "gradient_reversal", "batch_centring",
        "row_norm", "scale_invariant_error", "batches that differ", "several micro-batches",
        "data 2", "grids", "pieces"})
    EXPECT_GE(count[kind], kNumCases / 20) << kind;
}

/// How a network lies on its stages, in node order.
std::string shape_of(const RandomCase& random) {
  std::vector<int> stages;
  for (const Node& node : random.graph.nodes())
    stages.push_back(random.plan.stage_of.at(node.name));
  const auto turn = std::is_sorted_until(stages.begin(), stages.end());
  if (turn == stages.end()) return "consecutive";
  return std::is_sorted(turn, stages.end(), std::greater<>()) ? "folded" : "arbitrary";
}

/// The cases above are worth what they cover.
TEST(RandomNetworks, OnStagesAreOfAllKinds) {
  std::map<std::string, uint64_t> count;
  for (uint64_t seed = 1; seed <= kNumCases; ++seed) {
    const RandomCase random = random_stages_case(seed);
    const Plan& plan = random.plan;
    ++count[to_string(plan.schedule)];
    ++count[shape_of(random)];
    ++count[fmt::format("{} stages", plan.num_stages())];
    count["several micro-batches"] += plan.micro_batches > 1;
    count["several micro-batches, not gpipe"] +=
        plan.micro_batches > 1 && plan.schedule != ScheduleKind::kGpipe;
    count["uneven micro-batches"] +=
        random.graph.type(random.graph.inputs()[0]).batch() % plan.micro_batches != 0;
    count["gems with mirrored micro-batches"] +=
        plan.micro_batches > 1 && plan.schedule == ScheduleKind::kGems;
    count["data 2"] += plan.data == 2;
    count["pieces"] += plan.pieces_along(0) * plan.pieces_along(1) * plan.pieces_along(2) > 1;
    count["grids"] += plan.ranks_per_replica() > plan.num_stages();
    count["grids that differ"] +=
        std::any_of(plan.stages.begin(), plan.stages.end(),
                    [&](const auto& grid) { return grid != plan.stages[0]; });
    count["batch norm by micro-batches"] +=
        std::any_of(random.graph.nodes().begin(), random.graph.nodes().end(),
                    [](const Node& node) { return node.op->batch_parts() > 1; });
  }
  EXPECT_GE(count["several micro-batches"], kNumCases / 3);
  for (const char* schedule : {"sequential", "gpipe", "1f1b", "zero-bubble", "gems"})
    EXPECT_GE(count[schedule], kNumCases / 20) << schedule;
  for (const char* often : {"2 stages", "3 stages", "4 stages", "consecutive", "arbitrary", "grids",
                            "grids that differ", "several micro-batches, not gpipe"})
    EXPECT_GE(count[often], kNumCases / 10) << often;
  for (const char* seldom : {"folded", "data 2", "pieces", "uneven micro-batches",
                             "gems with mirrored micro-batches", "batch norm by micro-batches"})
    EXPECT_GE(count[seldom], kNumCases / 40) << seldom;
  if (testing::Test::HasFailure())
    for (const auto& [what, cases] : count) fmt::print("{:>4} {}\n", cases, what);
}

}  // namespace
}  // namespace tessera::random_networks_test
