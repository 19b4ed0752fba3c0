// The models run on the reference path, and compute what the same network written out in ATen does.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tessera/graph/reference.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

std::vector<at::Tensor> random_inputs(const Graph& graph) {
  const Value& logits = graph.value(graph.outputs()[0]);
  at::manual_seed(1);
  return {at::randn(graph.type(graph.inputs()[0]).shape(), at::kDouble),
          at::randint(logits.type.channels(), graph.type(graph.inputs()[1]).shape(), at::kLong)};
}

std::vector<at::Tensor> initial_parameters(const Graph& graph) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, 1));
  return parameters;
}

struct Case {
  const char* spec;
  Shape input;
};

class RunsOnReference : public testing::TestWithParam<Case> {};

TEST_P(RunsOnReference, ForwardAndBackward) {
  const Graph graph = build_model(GetParam().spec, GetParam().input);
  std::vector<at::Tensor> parameters = initial_parameters(graph);
  const ReferenceResult result =
      run_reference(graph, random_inputs(graph), parameters, /*seed=*/1, /*step=*/0);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_GT(result.loss, 0);
  EXPECT_GT(result.input_gradients[0].abs().max().item<double>(), 0);
  for (size_t id = 0; id < parameters.size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    if (parameter.role == ParameterRole::kBuffer) continue;
    EXPECT_TRUE(at::isfinite(result.gradients[id]).all().item<bool>()) << parameter.name;
    EXPECT_GT(result.gradients[id].abs().max().item<double>(), 0) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, RunsOnReference,
                         testing::Values(Case{"cnn1d:base=4,depth=3", {2, 1, 37}},
                                         Case{"cnn2d:base=4,depth=2,classes=3", {2, 3, 11, 8}},
                                         Case{"cnn2d:base=4,depth=2,norm=none", {1, 2, 11, 8}},
                                         Case{"cnn3d:base=2,depth=2", {2, 1, 6, 5, 4}},
                                         Case{"fcn2d:width=0.05,classes=3", {1, 3, 47, 33}},
                                         Case{"unet2d:base=3,depth=3", {1, 3, 13, 10}},
                                         Case{"unet2d:base=3,depth=4,norm=none,classes=5",
                                              {1, 1, 9, 8}},
                                         Case{"unet3d:base=2,depth=3", {1, 2, 9, 8, 7}}));

/// Parameters by name, and layers with PyTorch's conventions.
struct Written {
  std::map<std::string, at::Tensor> parameters;

  at::Tensor conv(const at::Tensor& x, const std::string& name) const {
    const at::Tensor& weight = parameters.at(name + ".weight");
    return at::conv2d(x, weight, parameters.at(name + ".bias"), 1, weight.size(2) / 2);
  }
  at::Tensor up(const at::Tensor& x, const std::string& name, int64_t stride, int64_t padding,
                const at::Tensor& like) const {
    const auto bias = parameters.find(name + ".bias");
    const at::Tensor y = at::conv_transpose2d(
        x, parameters.at(name + ".weight"), bias == parameters.end() ? at::Tensor() : bias->second,
        stride, padding);
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

TEST(Written, Fcn) {
  expect_logits("fcn2d:width=0.05,classes=4,dropout=0", {1, 3, 50, 69}, &Written::fcn);
}

}  // namespace
}  // namespace tessera
