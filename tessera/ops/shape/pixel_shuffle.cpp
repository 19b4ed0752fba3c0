#include "tessera/ops/shape/pixel_shuffle.h"

#include "tessera/base/error.h"
#include "tessera/ops/shape/arrangement.h"

namespace tessera {
namespace {

enum Letter { kSample, kChannel, kRow, kColumn, kRowPhase, kColumnPhase };

/// The large image and the small one, with the same letters: channels c, pixels h and w of the
/// small one, phases i and j of a large pixel within a small one.
const Lettering kLarge{{kSample}, {kChannel}, {kRow, kRowPhase}, {kColumn, kColumnPhase}};
const Lettering kSmall{{kSample}, {kChannel, kRowPhase, kColumnPhase}, {kRow}, {kColumn}};

/// Throws InvalidInput where the value is not a picture.
const ValueType& picture_type(const Graph& graph, ValueId x, const char* kind,
                              const std::string& name, int64_t factor) {
  const ValueType& type = graph.type(x);
  if (type.element != Element::kReal || type.first_spatial() != 2 || type.num_spatial() != 2)
    throw_error<InvalidInput>(
        "[{} {}] input {} must be real, with batch, channels and 2 spatial axes", kind, name,
        to_string(type));
  if (factor < 1)
    throw_error<InvalidInput>("[{} {}] factor {} must be at least 1", kind, name, factor);
  return type;
}

}  // namespace

ValueId pixel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  const ValueType& type = picture_type(graph, x, "pixel_shuffle", name, factor);
  const int64_t area = factor * factor;
  if (type.channels() % area != 0)
    throw_error<InvalidInput>("[pixel_shuffle {}] {} channels; factor {} needs a multiple of {}",
                              name, type.channels(), factor, area);
  return rearrange(
      graph, x, name,
      {{type.batch(), type.channels() / area, type.axes[2].size, type.axes[3].size, factor, factor},
       {kSmall},
       kLarge});
}

ValueId pixel_unshuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor) {
  const ValueType& type = picture_type(graph, x, "pixel_unshuffle", name, factor);
  if (type.axes[2].size % factor != 0 || type.axes[3].size % factor != 0)
    throw_error<InvalidInput>(
        "[pixel_unshuffle {}] image {}x{}; factor {} needs sizes that are multiples of it", name,
        type.axes[2].size, type.axes[3].size, factor);
  return rearrange(graph, x, name,
                   {{type.batch(), type.channels(), type.axes[2].size / factor,
                     type.axes[3].size / factor, factor, factor},
                    {kLarge},
                    kSmall});
}

ValueId channel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t groups) {
  const ValueType& type = graph.type(x);
  if (type.num_axes() < 2 || type.axes[1].kind != AxisKind::kChannel || groups < 1 ||
      type.channels() % groups != 0)
    throw_error<InvalidInput>(
        "[channel_shuffle {}] {} groups of {}; give a divisor of the channels", name, groups,
        to_string(type));
  Arrangement shuffle{
      {type.batch(), groups, type.channels() / groups}, {{{0}, {1, 2}}}, {{0}, {2, 1}}};
  for (int axis = 2; axis < type.num_axes(); ++axis) {
    const int letter = axis + 1;
    shuffle.sizes.push_back(type.axes[axis].size);
    shuffle.from[0].push_back({letter});
    shuffle.to.push_back({letter});
  }
  return rearrange(graph, x, name, shuffle);
}

}  // namespace tessera
