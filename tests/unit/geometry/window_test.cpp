// Windows of convolution, transposed convolution and pooling against enumeration of every tap.

#include "tessera/geometry/window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::window_test {
namespace {

enum class Kind { kConvolution, kTransposed, kPooling };

Window random_window(Random& random, Kind kind) {
  Window window;
  window.kernel = random.between(1, 5);
  window.stride = random.between(1, 4);
  window.dilation = random.between(1, 4);
  const int64_t span = window.dilation * (window.kernel - 1) + 1;
  const int64_t max_pad = kind == Kind::kPooling ? span / 2 : span + 1;
  window.pad_low = random.between(0, max_pad);
  window.pad_high = random.between(0, max_pad);
  window.transposed = kind == Kind::kTransposed;
  if (window.transposed)
    window.output_padding = random.between(0, std::max(window.stride, window.dilation) - 1);
  window.ceil_mode = kind == Kind::kPooling && random.coin();
  return window;
}

std::string describe(uint64_t seed, const Window& w, int64_t input_size) {
  return fmt::format(
      "seed {}: kernel {} stride {} dilation {} pad {},{} output_padding {} transposed {} ceil {} "
      "input {}",
      seed, w.kernel, w.stride, w.dilation, w.pad_low, w.pad_high, w.output_padding, w.transposed,
      w.ceil_mode, input_size);
}

Range range_of(int64_t index) { return {index, index + 1}; }

int64_t tap(const Window& window, int64_t position, int64_t k) {
  return position * window.stride - window.pad_low + k * window.dilation;
}

/// Smallest range of the taps of `positions`.
Range brute_force_taps(const Window& window, const Range& positions) {
  Range taps;
  for (int64_t position = positions.begin; position < positions.end; ++position)
    for (int64_t k = 0; k < window.kernel; ++k)
      taps = hull(taps, range_of(tap(window, position, k)));
  return taps;
}

/// Smallest range of the positions in `candidates` with a tap in `target`.
Range brute_force_positions(const Window& window, const Range& target, const Range& candidates) {
  Range positions;
  for (int64_t position = candidates.begin; position < candidates.end; ++position)
    for (int64_t k = 0; k < window.kernel; ++k)
      if (target.contains(tap(window, position, k)))
        positions = hull(positions, range_of(position));
  return positions;
}

/// Counts the outputs whose window is allowed, one after the other.
int64_t brute_force_output_size(const Window& window, int64_t input_size) {
  const int64_t padded = window.pad_low + input_size + window.pad_high;
  const int64_t span = window.dilation * (window.kernel - 1) + 1;
  int64_t count = 0;
  for (int64_t start = 0; start < padded + window.stride; start += window.stride) {
    const bool fits = start + span <= padded;
    const bool less_than_a_stride_over = start + span < padded + window.stride;
    const bool starts_inside = start < window.pad_low + input_size;
    count += window.ceil_mode ? less_than_a_stride_over && starts_inside : fits;
  }
  return count;
}

Range random_range(Random& random, int64_t low, int64_t high) {
  const int64_t begin = random.between(low, high);
  return {begin, random.between(begin, high)};
}

TEST(Window, OutputSizeCountsTheLegalWindows) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Window window =
        random_window(random, random.coin() ? Kind::kConvolution : Kind::kPooling);
    const int64_t input_size = random.between(1, 40);
    SCOPED_TRACE(describe(seed, window, input_size));
    EXPECT_EQ(std::max<int64_t>(0, window.output_size(input_size)),
              brute_force_output_size(window, input_size));
  }
}

TEST(Window, CeilModeFollowsPyTorchsFormula) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    Window window = random_window(random, Kind::kPooling);
    window.ceil_mode = true;
    const int64_t input_size = random.between(1, 40);
    SCOPED_TRACE(describe(seed, window, input_size));
    const int64_t last_start =
        input_size + window.pad_low + window.pad_high - window.dilation * (window.kernel - 1) - 1;
    auto expected = static_cast<int64_t>(
        std::ceil(static_cast<double>(last_start) / static_cast<double>(window.stride)) + 1);
    if ((expected - 1) * window.stride >= input_size + window.pad_low) --expected;
    EXPECT_EQ(window.output_size(input_size), expected);
  }
}

TEST(Window, TransposedOutputEndsWithTheLastTap) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const Window window = random_window(random, Kind::kTransposed);
    const int64_t input_size = random.between(1, 40);
    SCOPED_TRACE(describe(seed, window, input_size));
    const Range written = brute_force_taps(window, {0, input_size});
    EXPECT_EQ(window.output_size(input_size),
              written.end - window.pad_high + window.output_padding);
  }
}

TEST(Window, ForwardNeedsExactlyItsTaps) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Window window =
        random_window(random, random.coin() ? Kind::kConvolution : Kind::kPooling);
    const int64_t input_size = random.between(1, 40);
    const Range out = random_range(random, 0, std::max<int64_t>(0, window.output_size(input_size)));
    SCOPED_TRACE(describe(seed, window, input_size) + " out " + to_string(out));
    const Range needed = window.needed(out, input_size);
    EXPECT_EQ(needed, brute_force_taps(window, out));
    if (out.empty()) continue;
    EXPECT_EQ(needed.size(),
              (out.size() - 1) * window.stride + window.dilation * (window.kernel - 1) + 1);
  }
}

TEST(Window, TransposedNeedsTheInputsThatWriteTheOutputs) {
  int empty_needs = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Window window = random_window(random, Kind::kTransposed);
    const int64_t input_size = random.between(1, 30);
    const Range out = random_range(random, 0, std::max<int64_t>(0, window.output_size(input_size)));
    SCOPED_TRACE(describe(seed, window, input_size) + " out " + to_string(out));
    const Range needed = window.needed(out, input_size);
    EXPECT_EQ(needed, brute_force_positions(window, out, {0, input_size}));
    empty_needs += needed.empty() && !out.empty();
  }
  EXPECT_GT(empty_needs, 0) << "gaps of strided kernels were not among the cases";
}

TEST(Window, ReachedIsTheInverseOfNeeded) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    Window window = random_window(random, Kind::kConvolution);
    const Range range = random_range(random, -10, 30);
    SCOPED_TRACE(describe(seed, window, 0) + " range " + to_string(range));
    EXPECT_EQ(window.reached(range), brute_force_positions(window, range, {-60, 60}));
    window.transposed = true;
    EXPECT_EQ(window.reached(range), brute_force_taps(window, range));
  }
}

// The phase of a stride comes from the global coordinate: an odd part of a stride-2 convolution
// starts at another pixel than kernel / 2 before its own first one.
TEST(Window, StridesKeepTheirPhaseOnUnevenParts) {
  const Window window{.kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1};
  EXPECT_EQ(window.output_size(11), 6);
  EXPECT_EQ(window.needed({0, 3}, 11), (Range{-1, 6}));
  EXPECT_EQ(window.needed({3, 6}, 11), (Range{5, 12}));
}

TEST(Window, PoolsAndUpConvolutionsOfTwoExchangeNothing) {
  const Window pool{.kernel = 2, .stride = 2};
  EXPECT_EQ(pool.needed({3, 7}, 20), (Range{6, 14}));
  const Window up{.kernel = 2, .stride = 2, .transposed = true};
  EXPECT_EQ(up.needed({6, 14}, 10), (Range{3, 7}));
  EXPECT_EQ(up.reached({3, 7}), (Range{6, 14}));
}

TEST(Window, OutputPaddingMayNeedNoInput) {
  const Window window{.kernel = 2, .stride = 3, .output_padding = 1, .transposed = true};
  EXPECT_EQ(window.output_size(2), 6);
  EXPECT_TRUE(window.needed({5, 6}, 2).empty());
  EXPECT_TRUE(window.needed({2, 3}, 2).empty());
  EXPECT_EQ(window.needed({2, 4}, 2), (Range{1, 2}));
}

TEST(Window, TooSmallInputsHaveNoOutput) {
  EXPECT_LE((Window{.kernel = 5}.output_size(3)), 0);
  EXPECT_LE((Window{.kernel = 5, .stride = 3}.output_size(1)), 0);
  EXPECT_EQ((Window{.kernel = 3, .stride = 2, .ceil_mode = true}.output_size(2)), 1);
}

TEST(Window, RefusesImpossibleSizes) {
  EXPECT_THROW(Window{.kernel = 0}.output_size(3), InvalidInput);
  EXPECT_THROW(Window{.stride = 0}.needed({0, 1}, 3), InvalidInput);
  EXPECT_THROW(Window{.dilation = 0}.reached({0, 1}), InvalidInput);
}

}  // namespace
}  // namespace tessera::window_test
