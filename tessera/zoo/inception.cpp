// Inception v3 (Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016)
// with torchvision's names and the modules of its five kinds:
//
//   Conv2d_1a..4a ── Mixed_5b,c,d ── 6a ── 6b,c,d,e ─┬─ 7a ── 7b,c ── fc
//                        A           B        C      │   D      E
//                                                    └─ AuxLogits (loss of weight 0.4)
//
// The image is taken as it is: torchvision's transform_input=False.

#include <fmt/format.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr int64_t kInceptionDefaultWidth = 32;
constexpr IntegerOption kInceptionWidth{
    "width", "channels of the first convolution; all others scale", 1, 4096};
constexpr RealOption kInceptionDropout{"dropout", "probability before the last linear layer", 0, 1};
constexpr double kAuxWeight = 0.4;

using Sizes = std::vector<int64_t>;

/// A convolution inside a module: BasicConv2d of torchvision.
struct Conv {
  std::string name;
  int64_t channels = 0;
  Sizes kernel = {1};
  Sizes padding = {0};
  Sizes stride = {1};
};

class InceptionBuilder {
 public:
  InceptionBuilder(const ModelOptions& options, const Shape& input)
      : width_(kInceptionWidth.read(options)),
        classes_(kClasses.read(options)),
        dropout_(kInceptionDropout.read(options)),
        image_(graph_.add_input("image", ValueType::image(input))) {}

  Graph build(bool with_aux) && {
    ValueId x = stem();
    for (const auto& [name, pool_channels] : {std::pair{"5b", 32}, {"5c", 64}, {"5d", 64}})
      x = module_a(x, fmt::format("Mixed_{}.", name), pool_channels);
    x = module_b(x, "Mixed_6a.");
    for (const auto& [name, inner] : {std::pair{"6b", 128}, {"6c", 160}, {"6d", 160}, {"6e", 192}})
      x = module_c(x, fmt::format("Mixed_{}.", name), inner);
    const ValueId aux = with_aux ? aux_logits(x) : -1;
    x = module_d(x, "Mixed_7a.");
    x = module_e(x, "Mixed_7b.");
    x = module_e(x, "Mixed_7c.");
    x = drop(graph_, global_average_pool(graph_, x), "dropout", dropout_);
    finish(linear(graph_, x, "fc", {.out_features = classes_}), aux);
    set_initial_weights(with_aux);
    return std::move(graph_);
  }

 private:
  ValueId stem() {
    ValueId x = convs(image_, "",
                      {{"Conv2d_1a_3x3", 32, {3}, {0}, {2}},
                       {"Conv2d_2a_3x3", 32, {3}},
                       {"Conv2d_2b_3x3", 64, {3}, {1}}});
    x = max_pool(graph_, x, "maxpool1", {.kernel = {3}, .stride = {2}});
    x = convs(x, "", {{"Conv2d_3b_1x1", 80}, {"Conv2d_4a_3x3", 192, {3}}});
    return max_pool(graph_, x, "maxpool2", {.kernel = {3}, .stride = {2}});
  }

  ValueId module_a(ValueId x, const std::string& module, int64_t pool_channels) {
    return join(module, {convs(x, module, {{"branch1x1", 64}}),
                         convs(x, module, {{"branch5x5_1", 48}, {"branch5x5_2", 64, {5}, {2}}}),
                         convs(x, module,
                               {{"branch3x3dbl_1", 64},
                                {"branch3x3dbl_2", 96, {3}, {1}},
                                {"branch3x3dbl_3", 96, {3}, {1}}}),
                         pooled(x, module, pool_channels)});
  }

  ValueId module_b(ValueId x, const std::string& module) {
    return join(module, {convs(x, module, {{"branch3x3", 384, {3}, {0}, {2}}}),
                         convs(x, module,
                               {{"branch3x3dbl_1", 64},
                                {"branch3x3dbl_2", 96, {3}, {1}},
                                {"branch3x3dbl_3", 96, {3}, {0}, {2}}}),
                         halved(x, module)});
  }

  ValueId module_c(ValueId x, const std::string& module, int64_t inner) {
    return join(module, {convs(x, module, {{"branch1x1", 192}}),
                         convs(x, module,
                               {{"branch7x7_1", inner},
                                {"branch7x7_2", inner, {1, 7}, {0, 3}},
                                {"branch7x7_3", 192, {7, 1}, {3, 0}}}),
                         convs(x, module,
                               {{"branch7x7dbl_1", inner},
                                {"branch7x7dbl_2", inner, {7, 1}, {3, 0}},
                                {"branch7x7dbl_3", inner, {1, 7}, {0, 3}},
                                {"branch7x7dbl_4", inner, {7, 1}, {3, 0}},
                                {"branch7x7dbl_5", 192, {1, 7}, {0, 3}}}),
                         pooled(x, module, 192)});
  }

  ValueId module_d(ValueId x, const std::string& module) {
    return join(module,
                {convs(x, module, {{"branch3x3_1", 192}, {"branch3x3_2", 320, {3}, {0}, {2}}}),
                 convs(x, module,
                       {{"branch7x7x3_1", 192},
                        {"branch7x7x3_2", 192, {1, 7}, {0, 3}},
                        {"branch7x7x3_3", 192, {7, 1}, {3, 0}},
                        {"branch7x7x3_4", 192, {3}, {0}, {2}}}),
                 halved(x, module)});
  }

  ValueId module_e(ValueId x, const std::string& module) {
    const ValueId one = convs(x, module, {{"branch1x1", 320}});
    const ValueId two = convs(x, module, {{"branch3x3_1", 384}});
    const ValueId three =
        convs(x, module, {{"branch3x3dbl_1", 448}, {"branch3x3dbl_2", 384, {3}, {1}}});
    return join(module, {one, forked(two, module + "branch3x3", "_2"),
                         forked(three, module + "branch3x3dbl", "_3"), pooled(x, module, 192)});
  }

  /// 1x3 and 3x1 side by side.
  ValueId forked(ValueId x, const std::string& branch, const std::string& suffix) {
    const ValueId wide = convs(x, branch + suffix, {{"a", 384, {1, 3}, {0, 1}}});
    const ValueId high = convs(x, branch + suffix, {{"b", 384, {3, 1}, {1, 0}}});
    return concat(graph_, {wide, high}, branch + suffix + ".concat");
  }

  ValueId pooled(ValueId x, const std::string& module, int64_t channels) {
    x = average_pool(graph_, x, module + "branch_pool.pool",
                     {.kernel = {3}, .stride = {1}, .padding = {1}});
    return convs(x, module, {{"branch_pool", channels}});
  }

  ValueId halved(ValueId x, const std::string& module) {
    return max_pool(graph_, x, module + "branch_pool", {.kernel = {3}, .stride = {2}});
  }

  ValueId aux_logits(ValueId x) {
    x = average_pool(graph_, x, "AuxLogits.pool", {.kernel = {5}, .stride = {3}});
    x = convs(x, "AuxLogits.", {{"conv0", 128}, {"conv1", 768, {5}}});
    x = global_average_pool(graph_, x);
    return linear(graph_, x, "AuxLogits.fc", {.out_features = classes_});
  }

  /// Convolution, norm and ReLU, one after another.
  ValueId convs(ValueId x, const std::string& prefix, const std::vector<Conv>& chain) {
    for (const Conv& conv : chain) {
      const std::string name = prefix + conv.name;
      x = convolution(
          graph_, x, name + ".conv",
          {.out_channels = scaled_channels(conv.channels, width_, kInceptionDefaultWidth),
           .kernel = conv.kernel,
           .stride = conv.stride,
           .padding = conv.padding,
           .bias = false});
      x = relu(graph_, batch_norm(graph_, x, name + ".bn", {.epsilon = 0.001}), name + ".relu");
    }
    return x;
  }

  ValueId join(const std::string& module, const std::vector<ValueId>& branches) {
    return concat(graph_, branches, module + "concat");
  }

  /// torchvision cuts the normal distribution off at -2 and 2: twenty deviations, farther than a
  /// draw can get.
  void set_initial_weights(bool with_aux) {
    start_convolutions(graph_, normal(0.1));
    start_linears(graph_, normal(0.1));
    if (with_aux) start_layer(graph_, "AuxLogits.fc", normal(0.001));
  }

  void finish(ValueId logits, ValueId aux) {
    graph_.mark_output(logits);
    const ValueId target = add_target(graph_, logits, "target");
    if (aux >= 0) {
      graph_.mark_output(aux);
      cross_entropy(graph_, aux, target, "aux_loss", {.weight = kAuxWeight});
    }
    cross_entropy(graph_, logits, target, "loss");
  }

  Graph graph_;
  int64_t width_;
  int64_t classes_;
  double dropout_;
  ValueId image_;
};

Graph build_inception(const ModelOptions& options, const Shape& input) {
  const bool with_aux = options.choice("aux", {"yes", "no"}) == "yes";
  if (with_aux)
    check_spatial_sizes("inception_v3", input, 299, " with aux=yes, and 75 with aux=no");
  else
    check_spatial_sizes("inception_v3", input, 75, "");
  return InceptionBuilder(options, input).build(with_aux);
}

}  // namespace

ModelInfo inception_v3() {
  return {.name = "inception_v3",
          .summary = "Inception v3 with torchvision's names, for classifying images",
          .num_spatial = 2,
          .default_input = {2, 3, 299, 299},
          .options = {kInceptionWidth.info(kInceptionDefaultWidth),
                      kClasses.info(1000),
                      kInceptionDropout.info(0.5),
                      {"aux", "yes",
                       "an auxiliary classifier as second output, with a loss of weight 0.4; yes "
                       "or no"}},
          .build = build_inception};
}

}  // namespace tessera
