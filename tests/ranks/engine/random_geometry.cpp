#include "tests/ranks/engine/random_geometry.h"

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/pointwise/softmax.h"
#include "tessera/ops/shape/arrangement.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/ops/shape/pixel_shuffle.h"
#include "tessera/ops/shape/resize_labels.h"
#include "tessera/ops/shape/slice.h"
#include "tessera/ops/shape/unit_axes.h"

namespace tessera {
namespace {

class GeometryMaker {
 public:
  GeometryMaker(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                Draw& draw)
      : graph_(graph), images_(images), name_(name), draw_(draw), x_(pick()) {}

  ValueId make() {
    switch (draw_.integer(0, 12)) {
      case 0:
      case 1:
        return interpolate();
      case 2:
      case 3:
        return pad();
      case 4:
        return slice(static_cast<int>(draw_.integer(1, num_spatial() + 1)));
      case 5:
        return concat();
      case 6:
        return to_pixels();
      case 7:
        return to_channels();
      case 8:
        return channel_shuffle(graph_, x_, name_, draw_.one_of(divisors(type().channels())));
      case 9:
        return unit_axes();
      case 10:
        return trade_axes();
      case 11:
        return attention();
      default:
        return supervised();
    }
  }

 private:
  ValueId pick() { return draw_.chance(0.7) ? images_.back() : draw_.one_of(images_); }
  const ValueType& type() const { return graph_.type(x_); }
  int num_spatial() const { return type().num_spatial(); }
  int64_t size(int axis) const { return type().axes[axis].size; }
  std::string name(const char* suffix) const { return name_ + "." + suffix; }

  static std::vector<int64_t> divisors(int64_t number) {
    std::vector<int64_t> result;
    for (int64_t divisor = 1; divisor <= number; ++divisor)
      if (number % divisor == 0) result.push_back(divisor);
    return result;
  }

  ValueId interpolate() {
    using Mode = InterpolationMode;
    std::vector<Mode> modes{Mode::kNearest, Mode::kNearestExact, Mode::kLinear};
    if (num_spatial() == 2) modes.push_back(Mode::kCubic);
    InterpolateOptions options;
    options.mode = draw_.one_of(modes);
    const bool smooth = options.mode == Mode::kLinear || options.mode == Mode::kCubic;
    if (smooth && draw_.chance(0.5)) options.corners = Corners::kAligned;
    const bool by_size = draw_.chance(0.5);
    for (int i = 0; i < num_spatial(); ++i) {
      if (by_size)
        options.size.push_back(draw_.integer(1, 2 * size(2 + i)));
      else
        options.scale.push_back(draw_.real(0.4, 2.5));
    }
    return tessera::interpolate(graph_, x_, name_, options);
  }

  ValueId pad() {
    using Mode = PadOptions::Mode;
    PadOptions options;
    options.mode = draw_.one_of<Mode>(
        {Mode::kConstant, Mode::kReflect, Mode::kReplicate, Mode::kCircular, Mode::kCircular});
    if (options.mode == Mode::kConstant && draw_.chance(0.5)) options.value = 0.25;
    for (int i = 0; i < num_spatial(); ++i) {
      const int64_t pixels = size(2 + i);
      const int64_t least = options.mode == Mode::kConstant ? -pixels / 3 : 0;
      const int64_t most = options.mode == Mode::kReflect ? std::min<int64_t>(4, pixels - 1)
                                                          : std::min<int64_t>(4, pixels);
      options.low.push_back(draw_.integer(least, most));
      options.high.push_back(draw_.integer(least, most));
    }
    return tessera::pad(graph_, x_, name_, options);
  }

  /// At least two pixels, where there are two: networks would shrink to nothing.
  ValueId slice(int axis) {
    const int64_t least = std::min<int64_t>(axis == 1 ? 1 : 2, size(axis));
    SliceOptions options{.axis = axis};
    options.begin = draw_.integer(0, (size(axis) - least) / 2);
    options.end = draw_.integer(options.begin + least, size(axis));
    options.step = draw_.integer(1, options.end - options.begin > 4 ? 3 : 1);
    return tessera::slice(graph_, x_, name_, options);
  }

  /// Joins values that agree but for one axis; a value and itself where there is no other.
  ValueId concat() {
    const int axis = static_cast<int>(draw_.integer(1, num_spatial() + 1));
    std::vector<ValueId> partners;
    for (ValueId other : images_) {
      Shape left = type().shape(), right = graph_.type(other).shape();
      right[axis] = left[axis];
      if (left == right) partners.push_back(other);
    }
    const ValueId other = draw_.one_of(partners);
    return tessera::concat(graph_, {other, x_}, name_, axis);
  }

  ValueId to_pixels() {
    const int64_t factor = draw_.integer(2, 3);
    const std::vector<ValueId> copies(factor * factor, x_);
    return pixel_shuffle(graph_, tessera::concat(graph_, copies, name("copies")), name_, factor);
  }

  /// What does not divide is padded first, which shifts the pixels against the cuts.
  ValueId to_channels() {
    const int64_t factor = draw_.integer(2, 3);
    PadOptions options;
    for (int i = 0; i < num_spatial(); ++i) {
      const int64_t missing = (factor - size(2 + i) % factor) % factor;
      options.low.push_back(draw_.integer(0, missing));
      options.high.push_back(missing - options.low.back());
    }
    return pixel_unshuffle(graph_, tessera::pad(graph_, x_, name("pad"), options), name_, factor);
  }

  /// A letter for each axis.
  Arrangement letters() const {
    Arrangement arrangement{type().shape(), {{}}, {}};
    for (int axis = 0; axis < type().num_axes(); ++axis) arrangement.from[0].push_back({axis});
    arrangement.to = arrangement.from[0];
    return arrangement;
  }

  /// Two axes change places: what were channels is cut, what was cut are channels.
  ValueId trade_axes() {
    Arrangement arrangement = letters();
    std::swap(arrangement.to[1], arrangement.to[draw_.integer(2, num_spatial() + 1)]);
    return rearrange(graph_, x_, name_, arrangement);
  }

  /// Between all pixels, or between those of one line.
  ValueId attention() {
    Arrangement scores = letters();
    Lettering other = scores.from[0];
    std::vector<int> keys;
    int64_t count = 1;
    for (int axis = 2; axis < type().num_axes(); ++axis) {
      if (axis > 2 && draw_.chance(0.4)) continue;  // only pixels of the same line
      keys.push_back(static_cast<int>(scores.sizes.size()));
      scores.sizes.push_back(size(axis));
      other[axis] = {keys.back()};
      count *= size(axis);
    }
    if (count < 2 || count > 256)
      throw_error<InvalidInput>("[{}] attention is to have 2 to 256 pixels", name_);
    scores.from.push_back(other);
    scores.to[1] = keys;
    const ValueId products = contract(graph_, x_, x_, name("scores"), scores);
    const ValueId weights = softmax(graph_, products, name("softmax"));
    Arrangement sums{scores.sizes, {scores.to, other}, scores.from[0]};
    return contract(graph_, weights, x_, name_, sums);
  }

  /// A channel axis or a spatial one goes and comes, or comes and goes.
  ValueId unit_axes() {
    if (num_spatial() < 3 && draw_.chance(0.5)) {
      const int axis = static_cast<int>(draw_.integer(2, 2 + num_spatial()));
      return squeeze(graph_, unsqueeze(graph_, x_, name("unsqueeze"), axis), name_, axis);
    }
    const int64_t channel = draw_.integer(0, type().channels() - 1);
    const ValueId one =
        tessera::slice(graph_, x_, name("one"), {.axis = 1, .begin = channel, .end = channel + 1});
    return unsqueeze(graph_, squeeze(graph_, one, name("squeeze"), 1), name_, 1);
  }

  /// A loss on labels of another size, as in deep supervision.
  ValueId supervised() {
    ValueType labels = type();
    labels.element = Element::kIndex;
    labels.axes.erase(labels.axes.begin() + 1);
    std::vector<int64_t> wanted;
    for (int i = 0; i < num_spatial(); ++i) {
      wanted.push_back(size(2 + i));
      Axis& axis = labels.axes[1 + i];
      axis.size = draw_.integer(1, 2 * axis.size);
      axis.stride = axis.stride * Ratio::of(wanted.back(), axis.size);
    }
    const ValueId target =
        resize_labels(graph_, graph_.add_input(name("labels"), labels), name("resized"), wanted);
    const ValueId logits = convolution(graph_, x_, name_, {draw_.integer(2, 3), {1}});
    cross_entropy(graph_, logits, target, name("loss"));
    return logits;
  }

  Graph& graph_;
  const std::vector<ValueId>& images_;
  std::string name_;
  Draw& draw_;
  ValueId x_;
};

}  // namespace

ValueId random_geometry(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                        Draw& draw) {
  return GeometryMaker(graph, images, name, draw).make();
}

}  // namespace tessera
