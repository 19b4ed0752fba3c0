#include "tessera/train/distance_transform.h"

#include <limits>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The lower envelope of the parabolas heights[i] + (x - i * spacing)^2 on one line.
class Envelope {
 public:
  explicit Envelope(int64_t longest) : heights_(longest), places_(longest), begins_(longest) {}

  /// Replaces `count` numbers, `stride` apart, by the envelope at their places.
  void replace(double* line, int64_t count, int64_t stride, double spacing) {
    int64_t last = -1;
    for (int64_t i = 0; i < count; ++i) {
      heights_[i] = line[i * stride];
      if (heights_[i] == kInfinite) continue;
      double begin = -kInfinite;  // from where on this parabola is the lowest
      for (; last >= 0; --last) {
        begin = crossing(places_[last], i, spacing);
        if (begin > begins_[last]) break;
        begin = -kInfinite;
      }
      places_[++last] = i;
      begins_[last] = begin;
    }
    if (last < 0) return;  // nothing but infinite numbers
    int64_t lowest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(i) * spacing;
      while (lowest < last && begins_[lowest + 1] < x) ++lowest;
      const double apart = static_cast<double>(i - places_[lowest]) * spacing;
      line[i * stride] = heights_[places_[lowest]] + apart * apart;
    }
  }

 private:
  /// Where the parabola on j, which is to the right of i, becomes the lower one.
  double crossing(int64_t i, int64_t j, double spacing) const {
    const double left = static_cast<double>(i) * spacing, right = static_cast<double>(j) * spacing;
    return (heights_[j] + right * right - heights_[i] - left * left) / (2 * (right - left));
  }

  std::vector<double> heights_;
  std::vector<int64_t> places_;  // of the parabolas of the envelope, from left to right
  std::vector<double> begins_;   // where each of them begins to be the lowest
};

}  // namespace

std::vector<double> squared_distances(const std::vector<uint8_t>& mask, const Shape& shape,
                                      const std::vector<double>& spacing) {
  TESSERA_CHECK(Box::whole(shape).volume() == static_cast<int64_t>(mask.size()) &&
                    shape.size() == spacing.size(),
                "a mask of {} pixels for {}", mask.size(), to_string(shape));
  std::vector<double> distances(mask.size());
  for (size_t i = 0; i < mask.size(); ++i) distances[i] = mask[i] != 0 ? 0 : kInfinite;
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t count = shape[axis];
    Envelope envelope(count);
    for (int64_t outer = 0; outer < static_cast<int64_t>(mask.size()); outer += count * stride)
      for (int64_t inner = 0; inner < stride; ++inner)
        envelope.replace(&distances[outer + inner], count, stride, spacing[axis]);
    stride *= count;
  }
  return distances;
}

}  // namespace tessera
