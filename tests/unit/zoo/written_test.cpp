// The models compute what the same network written out in ATen does. What torchvision has is
// compared with torchvision itself in tests/zoo/torchvision_test.py.

#include <gtest/gtest.h>

#include <map>

#include "tessera/graph/reference.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/random_start.h"

namespace tessera::written_test {
namespace {

/// Parameters by name, and layers with PyTorch's conventions.
struct Written {
  std::map<std::string, at::Tensor> parameters;

  at::Tensor bias(const std::string& name) const {
    const auto found = parameters.find(name + ".bias");
    return found == parameters.end() ? at::Tensor() : found->second;
  }
  at::Tensor conv(const at::Tensor& x, const std::string& name, int64_t stride = 1) const {
    const at::Tensor& weight = parameters.at(name + ".weight");
    return at::conv2d(x, weight, bias(name), stride, weight.size(2) / 2);
  }
  at::Tensor valid_conv(const at::Tensor& x, const std::string& name, int64_t stride = 1) const {
    return at::conv2d(x, parameters.at(name + ".weight"), bias(name), stride);
  }
  at::Tensor norm_relu(const at::Tensor& x, const std::string& name) const {
    return at::batch_norm(x, parameters.at(name + ".weight"), bias(name), {}, {}, true, 0, 1e-5,
                          false)
        .relu();
  }
  at::Tensor up(const at::Tensor& x, const std::string& name, int64_t stride, int64_t padding,
                const at::Tensor& like) const {
    const at::Tensor y =
        at::conv_transpose2d(x, parameters.at(name + ".weight"), bias(name), stride, padding);
    return at::constant_pad_nd(y, {0, like.size(3) - y.size(3), 0, like.size(2) - y.size(2)});
  }
  at::Tensor level(const at::Tensor& x, const std::string& name) const {
    return conv(conv(x, name + ".conv1").relu(), name + ".conv2").relu();
  }

  at::Tensor unet_of_depth_3(const at::Tensor& image) const {
    const at::Tensor enc1 = level(image, "enc1");
    const at::Tensor enc2 = level(at::max_pool2d(enc1, 2), "enc2");
    const at::Tensor bottom = level(at::max_pool2d(enc2, 2), "bottleneck");
    const at::Tensor dec2 = level(at::cat({enc2, up(bottom, "up2", 2, 0, enc2)}, 1), "dec2");
    const at::Tensor dec1 = level(at::cat({enc1, up(dec2, "up1", 2, 0, enc1)}, 1), "dec1");
    return conv(dec1, "head");
  }

  at::Tensor valid_level(const at::Tensor& x, const std::string& name) const {
    return valid_conv(valid_conv(x, name + ".conv1").relu(), name + ".conv2").relu();
  }
  /// 44x48 → 40x44, 20x22 → 16x18, 8x9 → 4x5, up 8x10 → 4x6, up 8x12 → 4x8.
  at::Tensor valid_unet_of_depth_3(const at::Tensor& image) const {
    const at::Tensor enc1 = valid_level(image, "enc1");
    const at::Tensor enc2 = valid_level(at::max_pool2d(enc1, 2), "enc2");
    at::Tensor x = valid_level(at::max_pool2d(enc2, 2), "bottleneck");
    const at::Tensor crop2 = enc2.slice(2, 4, 12).slice(3, 4, 14);
    x = valid_level(at::cat({crop2, up(x, "up2", 2, 0, crop2)}, 1), "dec2");
    const at::Tensor crop1 = enc1.slice(2, 16, 24).slice(3, 16, 28);
    x = valid_level(at::cat({crop1, up(x, "up1", 2, 0, crop1)}, 1), "dec1");
    return conv(x, "head");
  }

  at::Tensor gate(const at::Tensor& skip, const at::Tensor& signal, const std::string& name) const {
    const at::Tensor both =
        valid_conv(skip, name + ".skip", 2) + valid_conv(signal, name + ".signal");
    const at::Tensor weights = valid_conv(both.relu(), name + ".psi").sigmoid();
    return skip * at::upsample_bilinear2d(weights, {skip.size(2), skip.size(3)}, false);
  }
  at::Tensor attention_unet_of_depth_3(const at::Tensor& image) const {
    const at::Tensor enc1 = level(image, "enc1");
    const at::Tensor enc2 = level(at::max_pool2d(enc1, 2), "enc2");
    const at::Tensor bottom = level(at::max_pool2d(enc2, 2), "bottleneck");
    const at::Tensor skip2 = gate(enc2, bottom, "gate2");
    const at::Tensor dec2 = level(at::cat({skip2, up(bottom, "up2", 2, 0, enc2)}, 1), "dec2");
    const at::Tensor skip1 = gate(enc1, dec2, "gate1");
    return conv(level(at::cat({skip1, up(dec2, "up1", 2, 0, enc1)}, 1), "dec1"), "head");
  }

  at::Tensor residual(const at::Tensor& x, const std::string& name, int64_t stride = 1) const {
    const at::Tensor y = conv(norm_relu(x, name + ".norm1"), name + ".conv1", stride);
    return conv(norm_relu(y, name + ".norm2"), name + ".conv2") +
           conv(x, name + ".shortcut", stride);
  }
  at::Tensor doubled(const at::Tensor& x, const at::Tensor& like) const {
    const at::Tensor y = at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
    return y.slice(2, 0, like.size(2)).slice(3, 0, like.size(3));
  }
  at::Tensor resunet_of_depth_3(const at::Tensor& image) const {
    const at::Tensor enc1 = conv(norm_relu(conv(image, "enc1.conv1"), "enc1.norm2"), "enc1.conv2") +
                            conv(image, "enc1.shortcut");
    const at::Tensor enc2 = residual(enc1, "enc2", 2), bottom = residual(enc2, "bottleneck", 2);
    const at::Tensor dec2 = residual(at::cat({enc2, doubled(bottom, enc2)}, 1), "dec2");
    return conv(residual(at::cat({enc1, doubled(dec2, enc1)}, 1), "dec1"), "head");
  }

  /// A block of two convolutions, of three where the names say so.
  at::Tensor preactivated(const at::Tensor& x, const std::string& name, int64_t stride = 1) const {
    const at::Tensor active = norm_relu(x, name + ".norm1");
    const bool bottleneck = parameters.contains(name + ".conv3.weight");
    at::Tensor y = conv(active, name + ".conv1", bottleneck ? 1 : stride);
    y = conv(norm_relu(y, name + ".norm2"), name + ".conv2", bottleneck ? stride : 1);
    if (bottleneck) y = conv(norm_relu(y, name + ".norm3"), name + ".conv3");
    if (parameters.contains(name + ".shortcut.weight"))
      return y + conv(active, name + ".shortcut", stride);
    return y + (name == "stage1.0" ? active : x);
  }
  at::Tensor resnet_v2_of_2_blocks(const at::Tensor& image) const {
    at::Tensor x = conv(image, "stem");
    for (const char* stage : {"stage1", "stage2", "stage3"}) {
      x = preactivated(x, std::string(stage) + ".0", stage == std::string("stage1") ? 1 : 2);
      x = preactivated(x, std::string(stage) + ".1");
    }
    return at::linear(norm_relu(x, "norm").mean({2, 3}), parameters.at("head.weight"),
                      bias("head"));
  }

  at::Tensor vgg(at::Tensor x, std::initializer_list<int> features) const {
    for (int index : features) x = conv(x, "features." + std::to_string(index)).relu();
    return at::max_pool2d(x, 2);
  }
  at::Tensor fcn(const at::Tensor& image) const {
    const at::Tensor pool3 = vgg(vgg(vgg(image, {0, 2}), {5, 7}), {10, 12, 14});
    const at::Tensor pool4 = vgg(pool3, {17, 19, 21});
    const at::Tensor fc7 = conv(conv(vgg(pool4, {24, 26, 28}), "fc6").relu(), "fc7").relu();
    at::Tensor x = up(conv(fc7, "score_fc7"), "upscore2", 2, 1, pool4);
    x = up(x + conv(pool4, "score_pool4"), "upscore_pool4", 2, 1, pool3);
    return up(x + conv(pool3, "score_pool3"), "upscore8", 8, 4, image);
  }
};

void expect_logits(const std::string& spec, const Shape& input,
                   at::Tensor (Written::*network)(const at::Tensor&) const) {
  const Graph graph = build_model(spec, input);
  std::vector<at::Tensor> parameters = initial_parameters(graph);
  const std::vector<at::Tensor> inputs = random_inputs(graph);
  const at::Tensor logits = run_reference(graph, inputs, parameters, 1, 0).outputs[0];
  Written written;
  for (size_t id = 0; id < parameters.size(); ++id)
    written.parameters[graph.parameters()[id].name] = parameters[id];
  const at::Tensor expected = (written.*network)(inputs[0]);
  ASSERT_EQ(logits.sizes(), expected.sizes());
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-12);
}

TEST(Written, Unet) {
  expect_logits("unet2d:base=3,depth=3,norm=none", {2, 3, 13, 10}, &Written::unet_of_depth_3);
}

TEST(Written, UnetWithoutPadding) {
  expect_logits("unet2d_valid:base=3,depth=3", {2, 1, 44, 48}, &Written::valid_unet_of_depth_3);
}

TEST(Written, AttentionUnet) {
  expect_logits("attention_unet2d:base=4,depth=3,norm=none", {2, 3, 13, 10},
                &Written::attention_unet_of_depth_3);
}

TEST(Written, ResidualUnet) {
  expect_logits("resunet2d:base=3,depth=3", {2, 3, 13, 10}, &Written::resunet_of_depth_3);
}

TEST(Written, ResnetWithPreActivation) {
  expect_logits("resnet110_v2:width=3,blocks=2", {2, 3, 13, 10}, &Written::resnet_v2_of_2_blocks);
  expect_logits("resnet1001_v2:width=3,blocks=2", {2, 3, 13, 10}, &Written::resnet_v2_of_2_blocks);
}

TEST(Written, Fcn) {
  expect_logits("fcn2d:width=0.05,classes=4,dropout=0", {1, 3, 50, 69}, &Written::fcn);
}

}  // namespace
}  // namespace tessera::written_test
