// The U-Net as it was published: convolutions without padding, so that the logits belong to the
// middle of the image (572 pixels in, 388 out), and skips cropped to their middle. Each logit is a
// function of pixels only, not of zeros around the image. The labels have the size of the logits:
// the middle of a label map.

#include "tessera/base/error.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/unet_frame.h"

namespace tessera {
namespace {

constexpr const char* kName = "unet2d_valid";

ValueId centre_crop(Graph& graph, ValueId skip, ValueId below, int64_t level) {
  const ValueType &type = graph.type(skip), &half = graph.type(below);
  PadOptions options;
  for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis) {
    // Even: the skip was pooled without a rest, and both convolutions take two pixels.
    const int64_t rest = type.axes[axis].size - 2 * half.axes[axis].size;
    options.low.push_back(-rest / 2);
    options.high.push_back(-rest / 2);
  }
  const ValueId cropped = pad(graph, skip, fmt::format("crop{}", level), options);
  graph.set_size_rule(cropped, {.like = below, .factor = 2});
  return cropped;
}

/// The least size that leaves a pixel after all convolutions.
int64_t least_size(int64_t depth) {
  int64_t size = 1;
  for (int64_t level = 1; level < depth; ++level) size = (size + 4 + 1) / 2;
  size += 4;
  for (int64_t level = 1; level < depth; ++level) size = 2 * size + 4;
  return size;
}

/// Pooling must not drop a row, or the crops would lie off the middle.
void check_sizes(const ModelOptions& options, const Shape& input) {
  const int64_t depth = kUnetDepth.read(options);
  const int64_t least = least_size(depth), step = int64_t{1} << (depth - 1);
  check_spatial_sizes(kName, input, least,
                      fmt::format(" with depth {}; use a larger input or less depth", depth));
  for (size_t axis = 2; axis < input.size(); ++axis) {
    const int64_t rest = (input[axis] - least) % step;
    if (rest != 0)
      throw_error<InvalidInput>(
          "[{}] input {}: size {} of spatial axis {} leaves a row over in a pooling; with depth {} "
          "sizes are {} plus multiples of {}, such as {} or {}",
          kName, to_string(input), input[axis], axis - 2, depth, least, step, input[axis] - rest,
          input[axis] - rest + step);
  }
}

}  // namespace

ModelInfo unet2d_valid() {
  return {
      .name = kName,
      .summary = "U-Net without padding: the logits of the middle of an image",
      .num_spatial = 2,
      .default_input = {1, 1, 572, 572},
      .options = with_any_norm({kUnetBase.info(64), kUnetDepth.info(5), kClasses.info(2)}, "none"),
      .build = [](const ModelOptions& options, const Shape& input) {
        check_sizes(options, input);
        return build_unet(options, input, Border::kValid, centre_crop);
      }};
}

}  // namespace tessera
