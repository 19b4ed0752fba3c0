// The plateau's rule against ReduceLROnPlateau: the rates that PyTorch 1.13 gives for the same
// values.

#include "tessera/optim/plateau.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/refusal.h"

namespace tessera::plateau_test {
namespace {

const std::vector<double> kValues{1.0, 0.9,     0.9,  0.89995, 0.91, 0.8, NAN, 0.85,
                                  0.8, 0.79999, 0.79, 0.78,    0.9,  0.9, 0.9, 0.9};

std::vector<double> rates(Plateau& plateau, const std::vector<double>& values) {
  std::vector<double> result;
  for (double value : values) {
    plateau.update(value);
    result.push_back(plateau.rate());
  }
  return result;
}

TEST(Plateau, LowersTheRateAsPyTorchDoes) {
  Plateau falling({.learning_rate = 0.1, .factor = 0.5, .patience = 2});
  EXPECT_EQ(rates(falling, kValues),
            (std::vector<double>{0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025,
                                 0.025, 0.025, 0.025, 0.0125, 0.0125}));
  Plateau rising({.learning_rate = 0.1,
                  .factor = 0.3,
                  .patience = 1,
                  .threshold = 1e-2,
                  .min_learning_rate = 0.01,
                  .mode = Plateau::Mode::kMax});
  EXPECT_EQ(rates(rising, kValues),
            (std::vector<double>{0.1, 0.1, 0.03, 0.03, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01,
                                 0.01, 0.01, 0.01, 0.01, 0.01}));
}

TEST(Plateau, LeavesOutDropsThatAreNoLonger) {  // PyTorch's eps
  Plateau plateau({.learning_rate = 0.1, .factor = 0.1, .patience = 3});
  EXPECT_EQ(rates(plateau, std::vector<double>(60, 1.0)).back(), 1.0000000000000005e-08);
}

TEST(Plateau, ContinuesFromItsState) {
  const Plateau::Options options{.learning_rate = 0.1, .factor = 0.5, .patience = 2};
  Plateau whole(options);
  const std::vector<double> expected = rates(whole, kValues);
  for (size_t cut = 0; cut <= kValues.size(); ++cut) {
    Plateau first(options), second(options);
    std::vector<double> found =
        rates(first, {kValues.begin(), kValues.begin() + static_cast<long>(cut)});
    second.load_state(first.state());
    for (double rate : rates(second, {kValues.begin() + static_cast<long>(cut), kValues.end()}))
      found.push_back(rate);
    EXPECT_EQ(found, expected) << cut;
  }
}

TEST(Plateau, RefusesWhatMakesNoSense) {
  expect_refusal([] { Plateau({.factor = 1}); }, "a factor of 1 does not lower");
  expect_refusal([] { Plateau({.factor = -0.5}); }, "must be in [0, 1)");
  expect_refusal([] { Plateau({.patience = -1}); }, "patience -1 must be at least 0");
  expect_refusal([] { Plateau({.threshold = NAN}); }, "threshold nan");
}

}  // namespace
}  // namespace tessera::plateau_test
