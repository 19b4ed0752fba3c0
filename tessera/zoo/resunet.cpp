// A U-Net of residual blocks (Zhang, Liu, Wang, "Road Extraction by Deep Residual U-Net", 2018).
// Blocks have pre-activation, strided convolutions halve the size, and the nearest neighbour
// doubles it:
//
//   enc1 ──────────── skip ────────────► dec1 ── head         a block:
//     ╲ stride 2                     ╱ up1                      x ──── shortcut (1x1) ─────► add
//      enc2 ───────── skip ────► dec2                            ╲ norm1 ─ relu1 ─ conv1 ╱
//        ╲ stride 2          ╱ up2                                 norm2 ─ relu2 ─ conv2
//            bottleneck
//
// enc1 begins with its first convolution: the image needs no activation.

#include <fmt/format.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/unet_frame.h"

namespace tessera {
namespace {

class ResUnetBuilder {
 public:
  ResUnetBuilder(const ModelOptions& options, const Shape& input)
      : base_(kUnetBase.read(options)),
        depth_(kUnetDepth.read(options)),
        classes_(kClasses.read(options)),
        norm_(read_any_norm(options)),
        image_(graph_.add_input("image", ValueType::image(input))) {}

  Graph build() && {
    std::vector<ValueId> levels{first_block()};
    for (int64_t level = 2; level < depth_; ++level)
      levels.push_back(block(levels.back(), fmt::format("enc{}", level), channels_of(level), 2));
    ValueId x = block(levels.back(), "bottleneck", channels_of(depth_), 2);
    for (int64_t level = depth_ - 1; level >= 1; --level) x = ascend(x, levels[level - 1], level);
    x = convolution(graph_, x, "head", {.out_channels = classes_, .kernel = {1}});
    finish_with_cross_entropy(graph_, x);
    return std::move(graph_);
  }

 private:
  int64_t channels_of(int64_t level) const { return base_ << (level - 1); }

  ValueId first_block() {
    const ValueId x = conv(image_, "enc1.conv1", base_, {.kernel = 3, .bias = norm_.leaves_bias()});
    return second_half(x, image_, "enc1", base_, 1);
  }

  ValueId block(ValueId x, const std::string& name, int64_t channels, int64_t stride) {
    const ValueId y = conv(norm_relu(x, name, "1"), name + ".conv1", channels,
                           {.kernel = 3, .stride = stride, .bias = norm_.leaves_bias()});
    return second_half(y, x, name, channels, stride);
  }

  /// From the first convolution of a block, and the block's input.
  ValueId second_half(ValueId y, ValueId x, const std::string& name, int64_t channels,
                      int64_t stride) {
    y = conv(norm_relu(y, name, "2"), name + ".conv2", channels, {.kernel = 3});
    x = conv(x, name + ".shortcut", channels, {.stride = stride, .bias = false});
    return add(graph_, y, x, name + ".add");
  }

  ValueId ascend(ValueId x, ValueId skip, int64_t level) {
    const std::string up = fmt::format("up{}", level), decoder = fmt::format("dec{}", level);
    x = fit_to(graph_, interpolate(graph_, x, up, {.scale = {2}}), skip, up + ".crop");
    x = concat(graph_, {skip, x}, decoder + ".concat");
    return block(x, decoder, channels_of(level), 1);
  }

  struct ConvForm {
    int64_t kernel = 1;
    int64_t stride = 1;
    bool bias = true;
  };

  ValueId conv(ValueId x, const std::string& name, int64_t channels, const ConvForm& form) {
    return convolution(graph_, x, name,
                       {.out_channels = channels,
                        .kernel = {form.kernel},
                        .stride = {form.stride},
                        .padding = {form.kernel / 2},
                        .bias = form.bias});
  }

  ValueId norm_relu(ValueId x, const std::string& block, const std::string& suffix) {
    x = norm_.add(graph_, x, block + ".norm" + suffix);
    return relu(graph_, x, block + ".relu" + suffix);
  }

  Graph graph_;
  int64_t base_;
  int64_t depth_;
  int64_t classes_;
  NormChoice norm_;
  ValueId image_;
};

}  // namespace

ModelInfo resunet2d() {
  return {.name = "resunet2d",
          .summary = "U-Net of residual blocks for segmenting images",
          .num_spatial = 2,
          .default_input = {1, 3, 256, 256},
          .options = with_any_norm({kUnetBase.info(64), kUnetDepth.info(4), kClasses.info(2)}),
          .build = [](const ModelOptions& options, const Shape& input) {
            return ResUnetBuilder(options, input).build();
          }};
}

}  // namespace tessera
