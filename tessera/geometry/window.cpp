#include "tessera/geometry/window.h"

#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"

namespace tessera {
namespace {

constexpr Range kEverywhere{std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max()};

/// Distance from the first to the last tap.
int64_t reach(const Window& window) { return window.dilation * (window.kernel - 1); }

void check_window(const Window& window) {
  if (window.kernel < 1 || window.stride < 1 || window.dilation < 1)
    throw_error<InvalidInput>(
        "[window] kernel, stride and dilation must be at least 1, got {}, {} and {}", window.kernel,
        window.stride, window.dilation);
}

/// Hull of the taps of all `positions`: position p has its taps at p * stride - pad_low +
/// k * dilation. Positions are outputs of a forward window and inputs of a transposed one.
Range taps_of(const Window& window, const Range& positions) {
  if (positions.empty()) return {};
  const int64_t first = positions.begin * window.stride - window.pad_low;
  const int64_t last = (positions.end - 1) * window.stride - window.pad_low + reach(window);
  return {first, last + 1};
}

/// Whether a tap of `position` lies in `target`.
bool touches(const Window& window, int64_t position, const Range& target) {
  const int64_t first = position * window.stride - window.pad_low;
  const int64_t k = std::max<int64_t>(0, ceil_div(target.begin - first, window.dilation));
  return k < window.kernel && first + k * window.dilation < target.end;
}

/// Hull of the positions inside `limits` that have a tap in `target`: the inverse of taps_of.
Range positions_touching(const Window& window, const Range& target, const Range& limits) {
  if (target.empty()) return {};
  Range positions{ceil_div(target.begin + window.pad_low - reach(window), window.stride),
                  floor_div(target.end - 1 + window.pad_low, window.stride) + 1};
  positions = intersect(positions, limits);
  // A dilated kernel can step over a target narrower than its dilation.
  while (!positions.empty() && !touches(window, positions.begin, target)) ++positions.begin;
  while (!positions.empty() && !touches(window, positions.end - 1, target)) --positions.end;
  return positions.empty() ? Range{} : positions;
}

/// PyTorch's index of the nearest neighbour, in float for every type: it decides, in the last bit,
/// which pixel an output just at a boundary takes. Ratios 1 and 2 need no rounding, and so stay
/// exact on axes longer than a float can count (2^24). The exact mode goes from the centre of the
/// output (PyTorch's one forward kernel that subtracts half a pixel and adds it again, rounding
/// twice, agrees but for the compiler's choice of fused instructions).
int64_t nearest_index(const Interpolation& axis, int64_t out_index) {
  if (axis.scale <= 0 && axis.output_size == axis.input_size) return out_index;
  if (axis.scale <= 0 && axis.output_size == 2 * axis.input_size) return out_index / 2;
  const float step =
      axis.scale > 0 ? static_cast<float>(1.0 / axis.scale)
                     : static_cast<float>(axis.input_size) / static_cast<float>(axis.output_size);
  const float offset = axis.mode == InterpolationMode::kNearestExact ? 0.5F : 0.0F;
  const float position = static_cast<float>(out_index) + offset;
  const auto index = static_cast<int64_t>(std::floor(position * step));
  return std::min(index, axis.input_size - 1);
}

/// PyTorch's source coordinate of linear and cubic interpolation; it may lie outside the image.
double coordinate(const Interpolation& axis, int64_t out_index) {
  const auto out = static_cast<double>(out_index);
  const auto input_size = static_cast<double>(axis.input_size);
  const auto output_size = static_cast<double>(axis.output_size);
  if (axis.corners == Corners::kAligned)
    return axis.output_size > 1 ? (input_size - 1) / (output_size - 1) * out : 0;
  const double step = axis.scale > 0 ? 1.0 / axis.scale : input_size / output_size;
  return step * (out + 0.5) - 0.5;
}

Interpolation::Source linear_source(const Interpolation& axis, int64_t out_index) {
  // PyTorch copies here, whatever the user's scale.
  if (axis.output_size == axis.input_size) return {2, {out_index, out_index}, {1, 0}};
  const double at = std::max(0.0, coordinate(axis, out_index));
  const int64_t low = std::min(static_cast<int64_t>(at), axis.input_size - 1);
  const int64_t high = std::min(low + 1, axis.input_size - 1);
  const double weight = std::min(at - static_cast<double>(low), 1.0);
  return {2, {low, high}, {1 - weight, weight}};
}

/// Keys' convolution kernel with PyTorch's A, for distances of at most 1 and from 1 to 2.
double cubic_near(double x) {
  constexpr double A = -0.75;
  return ((A + 2) * x - (A + 3)) * x * x + 1;
}
double cubic_far(double x) {
  constexpr double A = -0.75;
  return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A;
}

/// PyTorch rounds the coordinate to float to find its pixel. On axes of thousands of pixels that
/// can be the next one; the distance is then a little below 0.
Interpolation::Source cubic_source(const Interpolation& axis, int64_t out_index) {
  const double at = coordinate(axis, out_index);
  const float pixel = std::floor(static_cast<float>(at));
  const double t = at - static_cast<double>(pixel);
  Interpolation::Source source{
      4, {}, {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)}};
  for (int tap = 0; tap < 4; ++tap)
    source.index[tap] =
        std::clamp<int64_t>(static_cast<int64_t>(pixel) + tap - 1, 0, axis.input_size - 1);
  return source;
}

}  // namespace

int64_t Window::output_size(int64_t input_size) const {
  check_window(*this);
  if (transposed)
    return (input_size - 1) * stride - pad_low - pad_high + reach(*this) + output_padding + 1;
  const int64_t last_start = input_size + pad_low + pad_high - reach(*this) - 1;
  if (!ceil_mode) return floor_div(last_start, stride) + 1;
  const int64_t size = ceil_div(last_start, stride) + 1;
  return (size - 1) * stride >= input_size + pad_low ? size - 1 : size;
}

Range Window::needed(const Range& out, int64_t input_size) const {
  check_window(*this);
  return transposed ? positions_touching(*this, out, {0, input_size}) : taps_of(*this, out);
}

Range Window::reached(const Range& in) const {
  check_window(*this);
  return transposed ? taps_of(*this, in) : positions_touching(*this, in, kEverywhere);
}

Interpolation::Source Interpolation::source(int64_t out_index) const {
  TESSERA_CHECK(input_size > 0 && 0 <= out_index && out_index < output_size,
                "output {} of {} from {} inputs", out_index, output_size, input_size);
  switch (mode) {
    case InterpolationMode::kNearest:
    case InterpolationMode::kNearestExact:
      return {1, {nearest_index(*this, out_index)}, {1}};
    case InterpolationMode::kLinear:
      return linear_source(*this, out_index);
    case InterpolationMode::kCubic:
      return cubic_source(*this, out_index);
  }
  throw_error<InternalError>("interpolation mode {}", static_cast<int>(mode));
}

Range Interpolation::needed(const Range& out) const {
  if (out.empty()) return {};
  // Every step of source() rounds monotonically, so the ends of `out` read the ends of the range.
  return {source(out.begin).first(), source(out.end - 1).last() + 1};
}

}  // namespace tessera
