// The structure of the models: parameters with their names and counts, and the shape of every
// value.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/named_shapes.h"

namespace tessera::build_test {
namespace {

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(Build, ParameterCounts) {
  EXPECT_EQ(build_model("unet2d").num_trainable(), 31'037'698);
  EXPECT_EQ(build_model("unet2d:norm=none").num_trainable(), 31'031'810);
  EXPECT_EQ(build_model("unet3d").num_trainable(), 90'298'626);
  // VGG16's convolutions 14,714,688, fc6 102,764,544, fc7 16,781,312, scores 102,207, upscores
  // 127,008.
  EXPECT_EQ(build_model("fcn2d").num_trainable(), 134'489'759);
  EXPECT_EQ(build_model("cnn1d").num_trainable(), 34'074);
  EXPECT_EQ(build_model("cnn2d").num_trainable(), 98'970);
  EXPECT_EQ(build_model("cnn3d").num_trainable(), 292'506);
}

TEST(Build, InputsOutputAndLoss) {
  for (const ModelInfo& model : models()) {
    SCOPED_TRACE(model.name);
    const Graph graph =
        model.build(ModelOptions(model.name, "", model.options), model.default_input);
    ASSERT_GE(graph.inputs().size(), 2u);  // more of models for several domains
    EXPECT_EQ(graph.value(graph.inputs()[0]).name, "image");
    EXPECT_EQ(graph.value(graph.inputs()[1]).name, "target");
    ASSERT_GE(graph.outputs().size(), 1u);
    EXPECT_TRUE(graph.nodes().back().op->is_loss());
    const auto loss = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                   [](const Node& node) { return node.name == "loss"; });
    ASSERT_NE(loss, graph.nodes().end());
    EXPECT_EQ(loss->inputs, (std::vector<ValueId>{graph.outputs()[0], graph.inputs()[1]}));
  }
}

TEST(Build, CnnShapes) {
  const Graph graph = build_model("cnn2d:base=4,depth=2,classes=7", {3, 5, 9, 6});
  const std::map<std::string, Shape> expected{{"image", {3, 5, 9, 6}},
                                              {"block1.conv", {3, 4, 9, 6}},
                                              {"block1.norm", {3, 4, 9, 6}},
                                              {"block1.relu", {3, 4, 9, 6}},
                                              {"block1.pool", {3, 4, 4, 3}},
                                              {"block2.conv", {3, 8, 4, 3}},
                                              {"block2.norm", {3, 8, 4, 3}},
                                              {"block2.relu", {3, 8, 4, 3}},
                                              {"block2.pool", {3, 8, 2, 1}},
                                              {"global_average_pool", {3, 8}},
                                              {"head", {3, 7}},
                                              {"target", {3}},
                                              {"loss", {3}}};
  EXPECT_EQ(shapes_by_name(graph), expected);
}

TEST(Build, CnnNames) {
  EXPECT_EQ(parameter_names(build_model("cnn1d:depth=1")),
            (std::vector<std::string>{"block1.conv.weight", "block1.norm.weight",
                                      "block1.norm.bias", "block1.norm.running_mean",
                                      "block1.norm.running_var", "head.weight", "head.bias"}));
  EXPECT_EQ(
      parameter_names(build_model("cnn3d:depth=2,norm=none")),
      (std::vector<std::string>{"block1.conv.weight", "block1.conv.bias", "block2.conv.weight",
                                "block2.conv.bias", "head.weight", "head.bias"}));
}

TEST(Build, UnetShapesAtOddSizes) {
  const Graph graph = build_model("unet2d:base=2,depth=3,classes=4,norm=none", {1, 3, 11, 14});
  const std::map<std::string, Shape> expected{{"image", {1, 3, 11, 14}},
                                              {"enc1.conv1", {1, 2, 11, 14}},
                                              {"enc1.relu1", {1, 2, 11, 14}},
                                              {"enc1.conv2", {1, 2, 11, 14}},
                                              {"enc1.relu2", {1, 2, 11, 14}},
                                              {"pool1", {1, 2, 5, 7}},
                                              {"enc2.conv1", {1, 4, 5, 7}},
                                              {"enc2.relu1", {1, 4, 5, 7}},
                                              {"enc2.conv2", {1, 4, 5, 7}},
                                              {"enc2.relu2", {1, 4, 5, 7}},
                                              {"pool2", {1, 4, 2, 3}},
                                              {"bottleneck.conv1", {1, 8, 2, 3}},
                                              {"bottleneck.relu1", {1, 8, 2, 3}},
                                              {"bottleneck.conv2", {1, 8, 2, 3}},
                                              {"bottleneck.relu2", {1, 8, 2, 3}},
                                              {"up2", {1, 4, 4, 6}},
                                              {"up2.pad", {1, 4, 5, 7}},
                                              {"dec2.concat", {1, 8, 5, 7}},
                                              {"dec2.conv1", {1, 4, 5, 7}},
                                              {"dec2.relu1", {1, 4, 5, 7}},
                                              {"dec2.conv2", {1, 4, 5, 7}},
                                              {"dec2.relu2", {1, 4, 5, 7}},
                                              {"up1", {1, 2, 10, 14}},
                                              {"up1.pad", {1, 2, 11, 14}},
                                              {"dec1.concat", {1, 4, 11, 14}},
                                              {"dec1.conv1", {1, 2, 11, 14}},
                                              {"dec1.relu1", {1, 2, 11, 14}},
                                              {"dec1.conv2", {1, 2, 11, 14}},
                                              {"dec1.relu2", {1, 2, 11, 14}},
                                              {"head", {1, 4, 11, 14}},
                                              {"target", {1, 11, 14}},
                                              {"loss", {1, 11, 14}}};
  EXPECT_EQ(shapes_by_name(graph), expected);
  EXPECT_EQ(inputs_of(graph, "dec2.concat"), (std::vector<std::string>{"enc2.relu2", "up2.pad"}));
  EXPECT_EQ(inputs_of(graph, "dec1.concat"), (std::vector<std::string>{"enc1.relu2", "up1.pad"}));
}

TEST(Build, UnetPadsOnlyWhereSomethingIsMissing) {
  const Graph even = build_model("unet3d:base=2,depth=3", {1, 1, 8, 12, 16});
  for (const Node& node : even.nodes()) EXPECT_NE(node.op->kind(), "pad") << node.name;
  const auto odd = shapes_by_name(build_model("unet3d:base=2,depth=3", {2, 1, 8, 13, 6}));
  EXPECT_EQ(odd.at("up2"), (Shape{2, 4, 4, 6, 2}));
  EXPECT_EQ(odd.at("up2.pad"), (Shape{2, 4, 4, 6, 3}));
  EXPECT_EQ(odd.at("up1"), (Shape{2, 2, 8, 12, 6}));
  EXPECT_EQ(odd.at("up1.pad"), (Shape{2, 2, 8, 13, 6}));
  EXPECT_EQ(odd.at("head"), (Shape{2, 2, 8, 13, 6}));
}

TEST(Build, UnetParameters) {
  const auto parameters = parameters_by_name(build_model("unet2d"));
  EXPECT_EQ(parameters.at("enc1.conv1.weight"), (Shape{64, 3, 3, 3}));
  EXPECT_EQ(parameters.at("enc1.norm1.weight"), (Shape{64}));
  EXPECT_EQ(parameters.at("enc4.norm2.running_var"), (Shape{512}));
  EXPECT_EQ(parameters.at("bottleneck.conv2.weight"), (Shape{1024, 1024, 3, 3}));
  EXPECT_EQ(parameters.at("up4.weight"), (Shape{1024, 512, 2, 2}));
  EXPECT_EQ(parameters.at("up4.bias"), (Shape{512}));
  EXPECT_EQ(parameters.at("dec4.conv1.weight"), (Shape{512, 1024, 3, 3}));
  EXPECT_EQ(parameters.at("head.weight"), (Shape{2, 64, 1, 1}));
  EXPECT_FALSE(parameters.contains("enc1.conv1.bias"));
  const auto plain = parameters_by_name(build_model("unet2d:norm=none"));
  EXPECT_EQ(plain.at("enc1.conv1.bias"), (Shape{64}));
  EXPECT_FALSE(plain.contains("enc1.norm1.weight"));
}

TEST(Build, FcnHasTheNamesOfTorchvisionsVgg16) {
  const auto parameters = parameters_by_name(build_model("fcn2d"));
  const std::map<std::string, Shape> weights{
      {"features.0.weight", {64, 3, 3, 3}},     {"features.2.weight", {64, 64, 3, 3}},
      {"features.5.weight", {128, 64, 3, 3}},   {"features.7.weight", {128, 128, 3, 3}},
      {"features.10.weight", {256, 128, 3, 3}}, {"features.12.weight", {256, 256, 3, 3}},
      {"features.14.weight", {256, 256, 3, 3}}, {"features.17.weight", {512, 256, 3, 3}},
      {"features.19.weight", {512, 512, 3, 3}}, {"features.21.weight", {512, 512, 3, 3}},
      {"features.24.weight", {512, 512, 3, 3}}, {"features.26.weight", {512, 512, 3, 3}},
      {"features.28.weight", {512, 512, 3, 3}}, {"fc6.weight", {4096, 512, 7, 7}},
      {"fc7.weight", {4096, 4096, 1, 1}},       {"score_fc7.weight", {21, 4096, 1, 1}},
      {"score_pool4.weight", {21, 512, 1, 1}},  {"score_pool3.weight", {21, 256, 1, 1}},
      {"upscore2.weight", {21, 21, 4, 4}},      {"upscore_pool4.weight", {21, 21, 4, 4}},
      {"upscore8.weight", {21, 21, 16, 16}}};
  size_t num_biases = 0;
  for (const auto& [name, shape] : parameters) {
    if (name.ends_with(".bias")) {
      ++num_biases;
      continue;
    }
    ASSERT_TRUE(weights.contains(name)) << name;
    EXPECT_EQ(shape, weights.at(name)) << name;
  }
  EXPECT_EQ(num_biases, weights.size() - 3);  // upscores have none
  EXPECT_EQ(parameters.size(), weights.size() + num_biases);
}

TEST(Build, FcnShapesAtOddSizes) {
  const auto shapes = shapes_by_name(build_model("fcn2d:width=0.03,classes=5", {2, 4, 95, 47}));
  const std::map<std::string, Shape> expected{
      {"features.0", {2, 2, 95, 47}},   {"features.4", {2, 2, 47, 23}},
      {"features.9", {2, 4, 23, 11}},   {"features.16", {2, 8, 11, 5}},
      {"features.23", {2, 15, 5, 2}},   {"features.30", {2, 15, 2, 1}},
      {"fc6", {2, 123, 2, 1}},          {"drop6", {2, 123, 2, 1}},
      {"fc7", {2, 123, 2, 1}},          {"drop7", {2, 123, 2, 1}},
      {"score_fc7", {2, 5, 2, 1}},      {"upscore2", {2, 5, 4, 2}},
      {"upscore2.pad", {2, 5, 5, 2}},   {"fuse_pool4", {2, 5, 5, 2}},
      {"upscore_pool4", {2, 5, 10, 4}}, {"upscore_pool4.pad", {2, 5, 11, 5}},
      {"fuse_pool3", {2, 5, 11, 5}},    {"upscore8", {2, 5, 88, 40}},
      {"upscore8.pad", {2, 5, 95, 47}}, {"target", {2, 95, 47}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(shapes.contains(name)) << name;
    EXPECT_EQ(shapes.at(name), shape) << name;
  }
}

TEST(Build, FcnOptions) {
  const Graph thin = build_model("fcn2d:width=0.001,classes=1", {1, 1, 32, 32});
  for (const Parameter& parameter : thin.parameters())
    for (int64_t size : parameter.shape) EXPECT_GE(size, 1) << parameter.name;
  const Graph plain = build_model("fcn2d:dropout=0");
  for (const Node& node : plain.nodes()) EXPECT_NE(node.op->kind(), "dropout");
}

TEST(Build, EverySizeFromTheLeastOnFits) {
  for (int64_t size = 32; size < 100; ++size) {
    const Graph fcn = build_model("fcn2d:width=0.001", {1, 1, size, 131 - size});
    EXPECT_EQ(fcn.type(fcn.outputs()[0]).shape(), (Shape{1, 21, size, 131 - size}));
    const Graph unet = build_model("unet2d:base=1,norm=none", {1, 1, size - 16, size});
    EXPECT_EQ(unet.type(unet.outputs()[0]).shape(), (Shape{1, 2, size - 16, size}));
  }
}

TEST(Build, StridesFollowTheLevels) {
  const Graph graph = build_model("unet2d:base=1,depth=3", {1, 1, 11, 14});
  std::map<std::string, Ratio> strides;
  for (const Value& value : graph.values()) strides[value.name] = value.type.axes.back().stride;
  EXPECT_EQ(strides.at("bottleneck.relu2"), (Ratio{4, 1}));
  EXPECT_EQ(strides.at("up2.pad"), strides.at("enc2.relu2"));
  EXPECT_EQ(strides.at("head"), (Ratio{1, 1}));
  EXPECT_EQ(strides.at("target"), (Ratio{1, 1}));
}

}  // namespace
}  // namespace tessera::build_test
