#include "tessera/ops/shape/pixel_shuffle.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/shape/arrangement.h"

namespace tessera {
namespace {

enum Letter { kSample, kChannel, kRow, kColumn, kRowPhase, kColumnPhase };

/// The large image and the small one, with the same letters: channels c, pixels h and w of the
/// small one, phases i and j of a large pixel within a small one.
const Lettering kLarge{{kSample}, {kChannel}, {kRow, kRowPhase}, {kColumn, kColumnPhase}};
const Lettering kSmall{{kSample}, {kChannel, kRowPhase, kColumnPhase}, {kRow}, {kColumn}};

constexpr int64_t kMaxFactor = 4096;

void check_picture(const Shape& image, const char* kind, const std::string& name, int64_t factor) {
  if (image.size() != 4)
    throw_error<InvalidInput>("[{} {}] input {} must have batch, channels and 2 spatial axes", kind,
                              name, to_string(image));
  if (factor < 1 || factor > kMaxFactor)
    throw_error<InvalidInput>("[{} {}] factor {} must be from 1 to {}", kind, name, factor,
                              kMaxFactor);
}

}  // namespace

Arrangement pixel_shuffle_of(const Shape& image, const std::string& name, int64_t factor) {
  check_picture(image, "pixel_shuffle", name, factor);
  const int64_t area = factor * factor;
  if (image[1] % area != 0)
    throw_error<InvalidInput>("[pixel_shuffle {}] {}; factor {} needs a multiple of {}", name,
                              counted(image[1], "channel"), factor, area);
  return {{image[0], image[1] / area, image[2], image[3], factor, factor}, {kSmall}, kLarge};
}

Arrangement pixel_unshuffle_of(const Shape& image, const std::string& name, int64_t factor) {
  check_picture(image, "pixel_unshuffle", name, factor);
  if (image[2] % factor != 0 || image[3] % factor != 0)
    throw_error<InvalidInput>(
        "[pixel_unshuffle {}] image {}x{}; factor {} needs sizes that are multiples of it", name,
        image[2], image[3], factor);
  return {
      {image[0], image[1], image[2] / factor, image[3] / factor, factor, factor}, {kLarge}, kSmall};
}

Arrangement channel_shuffle_of(const Shape& image, const std::string& name, int64_t groups) {
  if (image.size() < 2 || groups < 1 || image[1] % groups != 0)
    throw_error<InvalidInput>("[channel_shuffle {}] {} of {}; give a divisor of the channels", name,
                              counted(groups, "group"), to_string(image));
  Arrangement shuffle{{image[0], groups, image[1] / groups}, {{{0}, {1, 2}}}, {{0}, {2, 1}}};
  for (size_t axis = 2; axis < image.size(); ++axis) {
    const int letter = static_cast<int>(axis) + 1;
    shuffle.sizes.push_back(image[axis]);
    shuffle.from[0].push_back({letter});
    shuffle.to.push_back({letter});
  }
  return shuffle;
}

ValueId pixel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  return rearrange(graph, x, name, pixel_shuffle_of(graph.type(x).shape(), name, factor));
}

ValueId pixel_unshuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  return rearrange(graph, x, name, pixel_unshuffle_of(graph.type(x).shape(), name, factor));
}

ValueId channel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t groups) {
  return rearrange(graph, x, name, channel_shuffle_of(graph.type(x).shape(), name, groups));
}

}  // namespace tessera
