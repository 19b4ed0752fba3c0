// Hundreds of random networks on random placements against the autograd oracle. A failure prints its
// seed; `TESSERA_SEED=<seed> engine_test --gtest_filter='RandomNetworks.*'` runs that one alone, with
// its network and its difference.

#include <gtest/gtest.h>

#include <cstdlib>

#include "ranks/engine/random_network.h"
#include "tessera/trial/verify.h"

namespace tessera {
namespace {

constexpr uint64_t kNumCases = 600;

void check(uint64_t seed) {
  const RandomCase random = random_case(seed);
  SCOPED_TRACE("replay: TESSERA_SEED=" + std::to_string(seed) +
               " engine_test --gtest_filter='RandomNetworks.*'\n" + random.description);
  VerifyOptions options;
  options.plan = random.plan;
  options.seed = seed;
  options.recompute = seed % 4 != 0;
  options.timeout_seconds = 30;
  try {
    const VerifyReport report = verify(random.graph, options);
    EXPECT_TRUE(report.ok) << "loss " << report.loss_rel << " output " << report.output_rel
                           << " input gradient " << report.input_grad_rel << " gradient "
                           << report.param_grad_rel << " updated " << report.updated_param_rel
                           << " buffer " << report.buffer_rel << ", worst: " << report.worst;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(RandomNetworks, EqualTheOracle) {
  if (const char* seed = std::getenv("TESSERA_SEED")) return check(std::strtoull(seed, nullptr, 10));
  for (uint64_t seed = 1; seed <= kNumCases; ++seed) check(seed);
}

}  // namespace
}  // namespace tessera
