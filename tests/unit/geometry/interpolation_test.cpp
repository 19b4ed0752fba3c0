// Interpolation coordinates. Linear and cubic: against the exact rational coordinate. Nearest:
// against the exact rational index where rounding cannot matter, and PyTorch's answers where it
// does.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/geometry/window.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::interpolation_test {
namespace {

constexpr auto kNearest = InterpolationMode::kNearest;
constexpr auto kNearestExact = InterpolationMode::kNearestExact;
constexpr auto kLinear = InterpolationMode::kLinear;
constexpr auto kCubic = InterpolationMode::kCubic;
constexpr auto kNotAligned = Corners::kNotAligned;
constexpr auto kAligned = Corners::kAligned;

std::string describe(uint64_t seed, const Interpolation& axis) {
  const char* const modes[] = {"nearest", "nearest-exact", "linear", "cubic"};
  return fmt::format("seed {}: {} {} from {} to {} scale {}", seed,
                     modes[static_cast<int>(axis.mode)],
                     axis.corners == kAligned ? "aligned" : "not aligned", axis.input_size,
                     axis.output_size, axis.scale);
}

/// With a user's scale of quarters, the output size is PyTorch's floor(input * scale).
Interpolation random_interpolation(Random& random) {
  Interpolation axis;
  axis.mode = static_cast<InterpolationMode>(random.between(0, 3));
  axis.corners = random.coin() ? kNotAligned : kAligned;
  axis.input_size = random.between(1, 60);
  axis.output_size = random.between(1, 150);
  if (random.between(0, 2) == 0) {
    const int64_t quarters = random.between(1, 16);
    const int64_t output_size = axis.input_size * quarters / 4;
    if (output_size == 0) return axis;
    axis.output_size = output_size;
    axis.scale = static_cast<double>(quarters) / 4;
  }
  return axis;
}

/// A coordinate as the exact fraction numerator / denominator.
struct Fraction {
  int64_t numerator, denominator;
  int64_t floor() const { return numerator / denominator; }
  int64_t remainder() const { return numerator % denominator; }
};

/// The input step per output: 1 / scale, or the ratio of the sizes.
Fraction step(const Interpolation& axis) {
  if (axis.scale > 0) return {4, static_cast<int64_t>(axis.scale * 4)};
  return {axis.input_size, axis.output_size};
}

/// May be negative.
Fraction coordinate(const Interpolation& axis, int64_t out) {
  if (axis.corners == kAligned) {
    if (axis.output_size == 1) return {0, 1};
    return {out * (axis.input_size - 1), axis.output_size - 1};
  }
  const auto [input, output] = step(axis);
  return {(2 * out + 1) * input - output, 2 * output};
}

/// Linear interpolation copies where the size does not change, whatever the user's scale.
Fraction linear_coordinate(const Interpolation& axis, int64_t out) {
  if (axis.input_size == axis.output_size) return {out, 1};
  const Fraction at = coordinate(axis, out);
  return {std::max<int64_t>(0, at.numerator), at.denominator};
}

/// Linear interpolation of `values` at the exact coordinate, held constant after the last value.
double brute_force_linear(const Interpolation& axis, const std::vector<double>& values,
                          int64_t out) {
  const Fraction at = linear_coordinate(axis, out);
  if (at.floor() >= axis.input_size - 1) return values.back();
  const auto high = static_cast<double>(at.remainder());
  const auto low = static_cast<double>(at.denominator - at.remainder());
  return (low * values[at.floor()] + high * values[at.floor() + 1]) /
         static_cast<double>(at.denominator);
}

/// The kernel of cubic convolution with A = -0.75, at a distance from a pixel.
double cubic_kernel(double distance) {
  const double x = std::abs(distance);
  if (x >= 2) return 0;
  return x <= 1 ? 1.25 * x * x * x - 2.25 * x * x + 1 : -0.75 * (x * x * x - 5 * x * x + 8 * x - 4);
}

/// The sum over all pixels near the coordinate, those outside being the border's.
double brute_force_cubic(const Interpolation& axis, const std::vector<double>& values,
                         int64_t out) {
  const Fraction at = coordinate(axis, out);
  const double position = static_cast<double>(at.numerator) / static_cast<double>(at.denominator);
  double sum = 0;
  for (int64_t pixel = -5; pixel < axis.input_size + 5; ++pixel)
    sum += cubic_kernel(position - static_cast<double>(pixel)) *
           values[std::clamp<int64_t>(pixel, 0, axis.input_size - 1)];
  return sum;
}

double weighted_sum(const Interpolation::Source& source, const std::vector<double>& values) {
  double sum = 0;
  for (int tap = 0; tap < source.num_taps; ++tap)
    sum += source.weight[tap] * values[source.index[tap]];
  return sum;
}

std::vector<double> random_values(Random& random, int64_t size) {
  std::vector<double> values(size);
  for (double& value : values) value = static_cast<double>(random.between(-1000, 1000)) / 1000;
  return values;
}

TEST(Interpolation, CubicReadsTheExactCoordinate) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    Interpolation axis = random_interpolation(random);
    axis.mode = kCubic;
    SCOPED_TRACE(describe(seed, axis));
    const std::vector<double> values = random_values(random, axis.input_size);
    for (int64_t out = 0; out < axis.output_size; ++out) {
      ASSERT_EQ(axis.source(out).num_taps, 4);
      ASSERT_NEAR(weighted_sum(axis.source(out), values), brute_force_cubic(axis, values, out),
                  1e-11)
          << "output " << out;
    }
  }
}

TEST(Interpolation, LinearReadsTheExactCoordinate) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    Interpolation axis = random_interpolation(random);
    axis.mode = kLinear;
    SCOPED_TRACE(describe(seed, axis));
    const std::vector<double> values = random_values(random, axis.input_size);
    for (int64_t out = 0; out < axis.output_size; ++out) {
      const Interpolation::Source source = axis.source(out);
      ASSERT_EQ(source.num_taps, 2);
      ASSERT_GE(source.weight[1], 0);
      ASSERT_LE(source.weight[1], 1);
      ASSERT_NEAR(weighted_sum(source, values), brute_force_linear(axis, values, out), 1e-12)
          << "output " << out;
    }
  }
}

// An output on a pixel's edge (remainder 0) may fall on either side, in PyTorch too.
TEST(Interpolation, NearestReadsTheExactIndexInsidePixels) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    Interpolation axis = random_interpolation(random);
    axis.mode = random.coin() ? kNearest : kNearestExact;
    SCOPED_TRACE(describe(seed, axis));
    const auto [input, output] = step(axis);
    for (int64_t out = 0; out < axis.output_size; ++out) {
      const int64_t twice_position = 2 * out + (axis.mode == kNearestExact ? 1 : 0);
      const Fraction at{twice_position * input, 2 * output};
      const Interpolation::Source source = axis.source(out);
      const int64_t exact = std::min(at.floor(), axis.input_size - 1);
      const int64_t index = source.index[0];
      ASSERT_TRUE(index == exact || (at.remainder() == 0 && index == exact - 1))
          << "output " << out;
      ASSERT_EQ(source.num_taps, 1);
      ASSERT_EQ(source.weight[0], 1);
    }
  }
}

TEST(Interpolation, NearestIsExactForSmallIntegerFactors) {
  for (int64_t factor = 1; factor <= 16; ++factor)
    for (int64_t input_size : {1, 7, 64, 333, 4096}) {
      const Interpolation up{kNearest, kNotAligned, input_size, factor * input_size, 0};
      const Interpolation down{kNearest, kNotAligned, factor * input_size, input_size, 0};
      Interpolation with_scale = up;
      with_scale.scale = static_cast<double>(factor);
      for (int64_t out = 0; out < up.output_size; ++out) {
        ASSERT_EQ(up.source(out).first(), out / factor);
        ASSERT_EQ(with_scale.source(out).first(), out / factor);
      }
      for (int64_t out = 0; out < input_size; ++out)
        ASSERT_EQ(down.source(out).first(), out * factor);
    }
}

// From 16 to 218 the exact index of output 109 is 8, but the float product is 7.9999995.
TEST(Interpolation, NearestRoundsInFloatAsPyTorchDoes) {
  const Interpolation by_size{kNearest, kNotAligned, 16, 218, 0};
  EXPECT_EQ(by_size.source(109).first(), 7);
  EXPECT_EQ(by_size.source(110).first(), 8);
  const Interpolation by_scale{kNearest, kNotAligned, 75, 202, 2.7};
  EXPECT_EQ(by_scale.source(81).first(), 29);
  const Interpolation same_size{kNearest, kNotAligned, 3, 3, 1.1};
  EXPECT_EQ(same_size.source(1).first(), 0) << "the user's scale counts, not the sizes";
}

// From 10 to 15, outputs 1 and 4 have their centres on the edges of pixels 1 and 3.
TEST(Interpolation, NearestExactGoesFromTheCentre) {
  const Interpolation axis{kNearestExact, kNotAligned, 10, 15, 0};
  const std::vector<int64_t> expected{0, 1, 1, 2, 3, 3};
  for (size_t out = 0; out < expected.size(); ++out)
    EXPECT_EQ(axis.source(static_cast<int64_t>(out)).first(), expected[out]) << "output " << out;
  const Interpolation third{kNearestExact, kNotAligned, 9, 3, 0};
  EXPECT_EQ(third.source(1).first(), 4) << "the middle one of three";
}

TEST(Interpolation, LongAxesStayExactWhereFloatCannotCount) {
  const int64_t long_axis = int64_t{1} << 26;
  const Interpolation same{kNearest, kNotAligned, long_axis, long_axis, 0};
  EXPECT_EQ(same.source(long_axis - 2).first(), long_axis - 2);
  const Interpolation twice{kNearest, kNotAligned, long_axis, 2 * long_axis, 0};
  EXPECT_EQ(twice.source(2 * long_axis - 3).first(), long_axis - 2);
}

TEST(Interpolation, NeededIsTheHullOfTheSources) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Interpolation axis = random_interpolation(random);
    const int64_t begin = random.between(0, axis.output_size);
    const Range out{begin, random.between(begin, axis.output_size)};
    SCOPED_TRACE(describe(seed, axis) + " out " + to_string(out));
    Range expected;
    for (int64_t index = out.begin; index < out.end; ++index) {
      const Interpolation::Source source = axis.source(index);
      const Range read{source.first(), source.last() + 1};
      ASSERT_TRUE((Range{0, axis.input_size}).contains(read));
      ASSERT_TRUE(std::is_sorted(source.index.begin(), source.index.begin() + source.num_taps));
      expected = hull(expected, read);
    }
    EXPECT_EQ(axis.needed(out), expected);
  }
}

TEST(Interpolation, CornersAndCopies) {
  const Interpolation aligned{kLinear, kAligned, 5, 9, 0};
  EXPECT_EQ(aligned.source(0).first(), 0);
  EXPECT_EQ(aligned.source(8).first(), 4);
  EXPECT_EQ(aligned.source(3).weight[1], 0.5);
  EXPECT_EQ((Interpolation{kLinear, kAligned, 5, 1, 0}.source(0).first()), 0);
  EXPECT_EQ((Interpolation{kLinear, kNotAligned, 5, 1, 0}.source(0).first()), 2);
  const auto copied = Interpolation{kLinear, kNotAligned, 5, 5, 1.1}.source(3);
  EXPECT_EQ(copied.first(), 3);
  EXPECT_EQ(copied.last(), 3);
  EXPECT_EQ(copied.weight[0], 1);
}

TEST(Interpolation, RefusesOutputsThatDoNotExist) {
  const Interpolation axis{kLinear, kNotAligned, 4, 8, 0};
  EXPECT_THROW(axis.source(8), InternalError);
  EXPECT_THROW(axis.source(-1), InternalError);
  EXPECT_THROW((Interpolation{kLinear, kNotAligned, 0, 8, 0}.source(0)), InternalError);
}

}  // namespace
}  // namespace tessera::interpolation_test
