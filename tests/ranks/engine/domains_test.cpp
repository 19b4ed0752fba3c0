// The models for several domains, placed by domains, in float64 against the oracle: one and two
// groups of workers a domain, grids, stages, replicas, pieces and micro-batches; and the numbers of
// one worker over many steps.

#include <gtest/gtest.h>

#include "tessera/lower/micro_batch_norm.h"
#include "tessera/planner/domains.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"

namespace tessera::domains_test {
namespace {

struct DomainsCase {
  std::string model;
  Shape input;
  int per_domain = 1;  // groups
  int stages = 1;      // of a group
  std::vector<int64_t> grid = {};
  int64_t replicas = 1;
  std::vector<int64_t> pieces = {};
  int64_t micro_batches = 1;
  int64_t steps = 2;
};

void PrintTo(const DomainsCase& domains, std::ostream* out) {
  *out << domains.model << " on " << domains.per_domain << " x " << domains.stages << " of "
       << to_string(domains.grid);
}

class Domains : public testing::TestWithParam<DomainsCase> {};

TEST_P(Domains, EqualTheOracle) {
  const DomainsCase& domains = GetParam();
  const Graph graph =
      with_micro_batch_norm(build_model(domains.model, domains.input), domains.micro_batches);
  const DomainGroups groups = group_by_domains(graph, domains.per_domain);
  VerifyOptions options;
  Plan& plan = options.plan;
  plan.stages.assign(groups.count() * domains.stages, domains.grid);
  plan.stage_of = stages_by_domains(graph, plan, groups);
  plan.data = domains.replicas;
  plan.pieces = domains.pieces;
  plan.micro_batches = domains.micro_batches;
  if (domains.micro_batches > 1) plan.schedule = ScheduleKind::kGpipe;
  options.steps = domains.steps;
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << differences(report);
}

const char* const kDigits = "dsn:base=2,code=6,classes=3";
const Shape kDigitsInput{3, 3, 16, 14};

std::string with_targets(const std::string& model, int targets) {
  return fmt::format("{},targets={}", model, targets);
}

/// 1, 2, 4 and 7 targets, on a group of workers a domain and on two.
std::vector<DomainsCase> many_targets() {
  std::vector<DomainsCase> all;
  for (int targets : {1, 2, 4, 7})
    for (int per_domain : {1, 2}) {
      all.push_back({with_targets(kDigits, targets), kDigitsInput, per_domain});
      all.push_back(
          {with_targets("dsn_unet2d:base=2,depth=3", targets), {2, 1, 16, 12}, per_domain});
    }
  return all;
}

std::vector<DomainsCase> other_axes() {
  const std::string digits = with_targets(kDigits, 2);
  const std::string unet = with_targets("dsn_unet2d:base=2,depth=3", 2);
  const Shape image{2, 1, 16, 12};
  return {
      {.model = digits, .input = kDigitsInput, .grid = {2, 2}},
      {.model = digits, .input = kDigitsInput, .per_domain = 2, .grid = {1, 2}},
      {.model = digits, .input = kDigitsInput, .stages = 2},
      {.model = digits, .input = kDigitsInput, .per_domain = 2, .stages = 2},
      {.model = digits, .input = kDigitsInput, .replicas = 2},
      {.model = digits, .input = kDigitsInput, .per_domain = 2, .pieces = {2, 1}},
      {.model = digits, .input = kDigitsInput, .micro_batches = 2},
      {.model = digits, .input = kDigitsInput, .per_domain = 2, .micro_batches = 3},
      {.model = digits + ",similarity=mmd", .input = kDigitsInput, .grid = {1, 2}},
      {.model = digits + ",similarity=pairwise", .input = kDigitsInput, .per_domain = 2},
      {.model = digits + ",target_batch=5", .input = kDigitsInput, .replicas = 2},
      {.model = digits + ",target_batch=2,similarity=mmd", .input = kDigitsInput, .per_domain = 2},
      {.model = digits + ",start=1,ramp=4,lambda_ramp=3", .input = kDigitsInput, .steps = 3},
      {.model = "dann:base=2,code=6,classes=3,targets=3", .input = kDigitsInput, .grid = {2, 1}},
      {.model = digits + ",norm=batch", .input = kDigitsInput, .per_domain = 2, .grid = {2, 1}},
      {.model = "dann:base=2,norm=instance,targets=2", .input = kDigitsInput, .replicas = 2},
      {.model = unet, .input = image, .grid = {2, 2}},
      {.model = unet, .input = image, .per_domain = 2, .grid = {2, 1}, .pieces = {1, 2}},
      {.model = unet, .input = image, .stages = 2, .grid = {1, 2}},
      {.model = unet + ",norm=batch", .input = image, .grid = {2, 1}, .replicas = 2},
      {.model = unet + ",norm=batch", .input = image, .stages = 2, .micro_batches = 2},
      {.model = "dsn_unet3d:base=2,depth=2",
       .input = {2, 1, 8, 7, 6},
       .per_domain = 2,
       .grid = {2, 1, 1}},
      // Each domain on four workers, cut into two stages.
      {.model = with_targets("dsn_unet2d:base=2,depth=3", 1),
       .input = image,
       .stages = 2,
       .grid = {1, 2},
       .replicas = 2,
       .pieces = {2, 1}},
  };
}

INSTANTIATE_TEST_SUITE_P(Targets, Domains, testing::ValuesIn(many_targets()));
INSTANTIATE_TEST_SUITE_P(Axes, Domains, testing::ValuesIn(other_axes()));
/// Four domains on four workers, twenty steps.
INSTANTIATE_TEST_SUITE_P(Long, Domains,
                         testing::Values(DomainsCase{.model = with_targets(kDigits, 3),
                                                     .input = kDigitsInput,
                                                     .steps = 20}));

}  // namespace
}  // namespace tessera::domains_test
