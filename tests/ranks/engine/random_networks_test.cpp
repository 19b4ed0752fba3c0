// Hundreds of random networks on random placements against the autograd oracle. A failure prints
// its seed; `TESSERA_SEED=<seed> engine_test --gtest_filter='RandomNetworks.*'` runs that one
// alone, with its network and its difference.

#include <gtest/gtest.h>

#include <cstdlib>

#include "ranks/engine/random_network.h"
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
    EXPECT_TRUE(report.ok || differs_by_rounding_only(report))
        << "loss " << report.loss_rel << " output " << report.output_rel << " input gradient "
        << report.input_grad_rel << " gradient " << report.param_grad_rel << " updated "
        << report.updated_param_rel << " buffer " << report.buffer_rel
        << ", worst: " << report.worst;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(RandomNetworks, EqualTheOracle) {
  if (const char* seed = std::getenv("TESSERA_SEED"))
    return check(std::strtoull(seed, nullptr, 10));
  for (uint64_t seed = 1; seed <= kNumCases; ++seed) check(seed);
}

}  // namespace
}  // namespace tessera
