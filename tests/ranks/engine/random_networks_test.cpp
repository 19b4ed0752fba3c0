// Hundreds of random networks on random placements against the autograd oracle. A failure prints
// its seed; `TESSERA_SEED=<seed> engine_test --gtest_filter=<test>` runs that one
// alone, with its network and its difference.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ranks/engine/random_stages.h"
#include "tessera/trial/verify.h"

namespace tessera {
namespace {

constexpr uint64_t kNumCases = 600;

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

void check(const RandomCase& random, uint64_t seed) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  SCOPED_TRACE(fmt::format("replay: TESSERA_SEED={} engine_test --gtest_filter='{}.{}'\n{}", seed,
                           test.test_suite_name(), test.name(), random.description));
  VerifyOptions options;
  options.plan = random.plan;
  options.seed = seed;
  options.recompute = seed % 4 != 0;
  options.timeout_seconds = 30;
  try {
    const VerifyReport report = verify(random.graph, options);
    EXPECT_TRUE(report.ok || differs_by_rounding_only(report))
        << "loss " << report.loss_rel << " output " << report.output_rel << " input gradient "
        << report.input_grad_rel << " gradient " << report.param_grad_rel << " updated "
        << report.updated_param_rel << " buffer " << report.buffer_rel
        << ", worst: " << report.worst;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

/// Calls make(seed) for the seed that is to be replayed, or for all.
template <class Make>
void check_all(const Make& make) {
  uint64_t first = 1, last = kNumCases;
  if (const char* seed = std::getenv("TESSERA_SEED"))
    first = last = std::strtoull(seed, nullptr, 10);
  for (uint64_t seed = first; seed <= last; ++seed) check(make(seed), seed);
}

TEST(RandomNetworks, EqualTheOracle) { check_all(random_case); }

/// On stages: any node anywhere, grids of their own, micro-batches, every schedule.
TEST(RandomNetworks, EqualTheOracleOnStages) { check_all(random_stages_case); }

}  // namespace
}  // namespace tessera
