// FCN-8s on VGG16 (Shelhamer, Long, Darrell, "Fully Convolutional Networks for Semantic
// Segmentation", 2017). Class scores at strides 32, 16 and 8 are added up from coarse to fine, then
// upsampled eightfold:
//
//   VGG blocks 1-3 ── pool3 ── VGG block 4 ── pool4 ── VGG block 5 ── fc6, fc7
//                       │                       │                        │
//                  score_pool3             score_pool4               score_fc7
//                       │                       │                        │
//   upscore8 ───────── add ── upscore_pool4 ── add ────── upscore2 ──────┘
//
// The paper pads the image by 100 and crops; here convolutions pad to keep sizes, so that the score
// maps lie on each other without crops. Names and initial values in the VGG part are
// torchvision's.

#include <algorithm>
#include <cmath>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr RealOption kFcnWidth{"width", "factor on the channels of VGG16, fc6 and fc7", 0.001, 8};
constexpr RealOption kFcnDropout{"dropout", "probability after fc6 and fc7", 0, 1};
constexpr int64_t kFcnLeastSize = 32;  // five pools of 2

class FcnBuilder {
 public:
  FcnBuilder(const ModelOptions& options, const Shape& input)
      : width_(kFcnWidth.read(options)),
        dropout_(kFcnDropout.read(options)),
        classes_(kClasses.read(options)),
        image_(graph_.add_input("image", ValueType::image(input))) {}

  Graph build() && {
    const ValueId pool3 = vgg_block(vgg_block(vgg_block(image_, 64, 2), 128, 2), 256, 3);
    const ValueId pool4 = vgg_block(pool3, 512, 3);
    const ValueId pool5 = vgg_block(pool4, 512, 3);
    // All that there is so far; the layers that follow keep PyTorch's defaults.
    start_convolutions(graph_, kaiming_normal(Fan::kOut));
    zero_biases_of_convolutions(graph_);
    const ValueId fc6 = fully_convolutional(pool5, "fc6", "drop6", 7);
    const ValueId fc7 = fully_convolutional(fc6, "fc7", "drop7", 1);

    ValueId x = upsample(score(fc7, "score_fc7"), "upscore2", 2, pool4);
    x = add(graph_, score(pool4, "score_pool4"), x, "fuse_pool4");
    x = upsample(x, "upscore_pool4", 2, pool3);
    x = add(graph_, score(pool3, "score_pool3"), x, "fuse_pool3");
    finish_with_cross_entropy(graph_, upsample(x, "upscore8", 8, image_));
    return std::move(graph_);
  }

 private:
  int64_t scaled(int64_t channels) const {
    return std::max<int64_t>(1, std::llround(width_ * static_cast<double>(channels)));
  }

  ValueId vgg_block(ValueId x, int64_t channels, int num_convolutions) {
    for (int i = 0; i < num_convolutions; ++i) {
      x = convolution(graph_, x, features_.next(),
                      {.out_channels = scaled(channels), .kernel = {3}, .padding = {1}});
      x = relu(graph_, x, features_.next());
    }
    return halve(graph_, x, features_.next());
  }

  /// A fully connected layer of VGG16, as a convolution.
  ValueId fully_convolutional(ValueId x, const std::string& name, const std::string& dropout_name,
                              int64_t kernel) {
    x = convolution(graph_, x, name,
                    {.out_channels = scaled(4096), .kernel = {kernel}, .padding = {kernel / 2}});
    x = relu(graph_, x, name + ".relu");
    return drop(graph_, x, dropout_name, dropout_);
  }

  ValueId score(ValueId x, const std::string& name) {
    return convolution(graph_, x, name, {.out_channels = classes_, .kernel = {1}});
  }

  /// To `factor` times the size, then to that of `like`. Without bias: the scores have theirs.
  ValueId upsample(ValueId x, const std::string& name, int64_t factor, ValueId like) {
    x = transposed_convolution(graph_, x, name,
                               {.out_channels = classes_,
                                .kernel = {2 * factor},
                                .stride = {factor},
                                .padding = {factor / 2},
                                .bias = false});
    return fit_to(graph_, x, like, name + ".pad");
  }

  Graph graph_;
  double width_;
  double dropout_;
  int64_t classes_;
  ValueId image_;
  Sequential features_{"features"};  // as torchvision's vgg16().features
};

}  // namespace

ModelInfo fcn2d() {
  const std::string name = "fcn2d";
  return {.name = name,
          .summary = "FCN-8s on VGG16 for segmenting images",
          .num_spatial = 2,
          .default_input = {1, 3, 256, 256},
          .options = {kFcnWidth.info(1), kClasses.info(21), kFcnDropout.info(0.5)},
          .build = [name](const ModelOptions& options, const Shape& input) {
            check_spatial_sizes(name, input, kFcnLeastSize, "");
            return FcnBuilder(options, input).build();
          }};
}

}  // namespace tessera
