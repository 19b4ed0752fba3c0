// The classifiers that torchvision has, and the residual networks with pre-activation: as many
// parameters as were published, and samples of their names and shapes. All names are compared with
// torchvision's in tests/zoo/torchvision_test.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/named_shapes.h"

namespace tessera::classifiers_test {
namespace {

std::map<std::string, Shape> parameters_of(const std::string& spec) {
  return parameters_by_name(build_model(spec));
}

int64_t count_nodes(const Graph& graph, const std::string& kind) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->kind() == kind; });
}

TEST(Classifiers, HaveAsManyParametersAsTorchvisions) {
  const std::pair<const char*, int64_t> published[] = {
      {"alexnet", 61'100'840},     {"densenet121", 7'978'856},
      {"densenet161", 28'681'000}, {"densenet169", 14'149'480},
      {"densenet201", 20'013'928}, {"inception_v3", 27'161'264},
      {"mobilenet_v2", 3'504'872}, {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},    {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},   {"resnet152", 60'192'808},
      {"vgg11", 132'863'336},      {"vgg13", 133'047'848},
      {"vgg16", 138'357'544},      {"vgg16:norm=batch", 138'365'992},
      {"vgg19", 143'667'240},      {"vgg19:norm=batch", 143'678'248}};
  for (const auto& [spec, count] : published)
    EXPECT_EQ(build_model(spec).num_trainable(), count) << spec;
}

TEST(Classifiers, Names) {
  const auto alexnet = parameters_of("alexnet");
  EXPECT_EQ(alexnet.at("features.10.weight"), (Shape{256, 256, 3, 3}));
  EXPECT_EQ(alexnet.at("classifier.1.weight"), (Shape{4096, 9216}));
  const auto vgg = parameters_of("vgg16:norm=batch");
  EXPECT_EQ(vgg.at("features.40.bias"), (Shape{512}));
  EXPECT_EQ(vgg.at("features.41.running_var"), (Shape{512}));
  EXPECT_EQ(vgg.at("classifier.0.weight"), (Shape{4096, 25088}));
  const auto resnet = parameters_of("resnet50");
  EXPECT_EQ(resnet.at("layer2.0.conv2.weight"), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(resnet.at("layer2.0.downsample.0.weight"), (Shape{512, 256, 1, 1}));
  EXPECT_EQ(resnet.at("layer4.2.bn3.running_mean"), (Shape{2048}));
  const auto densenet = parameters_of("densenet121");
  EXPECT_EQ(densenet.at("features.denseblock1.denselayer1.norm1.weight"), (Shape{64}));
  EXPECT_EQ(densenet.at("features.denseblock4.denselayer16.conv1.weight"), (Shape{128, 992, 1, 1}));
  const auto inception = parameters_of("inception_v3");
  EXPECT_EQ(inception.at("Mixed_5b.branch1x1.conv.weight"), (Shape{64, 192, 1, 1}));
  EXPECT_EQ(inception.at("Mixed_7c.branch3x3dbl_3b.conv.weight"), (Shape{384, 384, 3, 1}));
  EXPECT_EQ(inception.at("AuxLogits.conv1.bn.running_var"), (Shape{768}));
  const auto mobilenet = parameters_of("mobilenet_v2");
  EXPECT_EQ(mobilenet.at("features.1.conv.0.0.weight"), (Shape{32, 1, 3, 3}));
  EXPECT_EQ(mobilenet.at("features.17.conv.3.bias"), (Shape{320}));
}

TEST(Classifiers, ShapesAtTheSizesOfThePapers) {
  const auto inception = shapes_by_name(build_model("inception_v3"));
  EXPECT_EQ(inception.at("Mixed_5d.concat"), (Shape{2, 288, 35, 35}));
  EXPECT_EQ(inception.at("Mixed_6e.concat"), (Shape{2, 768, 17, 17}));
  EXPECT_EQ(inception.at("AuxLogits.conv1.relu"), (Shape{2, 768, 1, 1}));
  EXPECT_EQ(inception.at("Mixed_7c.concat"), (Shape{2, 2048, 8, 8}));
  const auto densenet = shapes_by_name(build_model("densenet121"));
  EXPECT_EQ(densenet.at("features.transition3.pool"), (Shape{2, 512, 7, 7}));
  EXPECT_EQ(densenet.at("features.norm5"), (Shape{2, 1024, 7, 7}));
  EXPECT_EQ(shapes_by_name(build_model("alexnet")).at("features.12"), (Shape{2, 256, 6, 6}));
  EXPECT_EQ(shapes_by_name(build_model("vgg16")).at("features.30"), (Shape{2, 512, 7, 7}));
  EXPECT_EQ(shapes_by_name(build_model("resnet50")).at("layer4.2.relu"), (Shape{2, 2048, 7, 7}));
}

TEST(Classifiers, WidthScalesAllChannels) {
  const auto resnet = parameters_of("resnet18:width=8,classes=5");
  EXPECT_EQ(resnet.at("layer4.1.conv2.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(resnet.at("fc.weight"), (Shape{5, 64}));
  EXPECT_EQ(parameters_of("alexnet:width=1").at("features.3.weight"), (Shape{3, 1, 5, 5}));
  EXPECT_EQ(parameters_of("vgg16:width=4").at("classifier.3.weight"), (Shape{256, 256}));
  EXPECT_EQ(parameters_of("inception_v3:width=4,aux=no").at("Mixed_6a.branch3x3.conv.weight"),
            (Shape{48, 36, 3, 3}));
  EXPECT_EQ(parameters_of("densenet161:growth=2").at("classifier.weight"), (Shape{1000, 92}));
}

TEST(Classifiers, TheAuxiliaryClassifierIsASecondOutputWithALoss) {
  const Graph with = build_model("inception_v3"), without = build_model("inception_v3:aux=no");
  ASSERT_EQ(with.outputs().size(), 2u);
  EXPECT_EQ(with.value(with.outputs()[0]).name, "fc");
  EXPECT_EQ(with.value(with.outputs()[1]).name, "AuxLogits.fc");
  EXPECT_EQ(count_nodes(with, "cross_entropy"), 2);
  EXPECT_EQ(without.outputs().size(), 1u);
  EXPECT_EQ(count_nodes(without, "cross_entropy"), 1);
  EXPECT_EQ(without.num_trainable(), 23'834'568);
  for (const Parameter& parameter : without.parameters())
    EXPECT_FALSE(parameter.name.starts_with("AuxLogits")) << parameter.name;
}

TEST(Classifiers, DropoutStandsWhereItCostsNoMap) {
  const Graph graph = build_model("alexnet");
  EXPECT_EQ(inputs_of(graph, "flatten"), (std::vector<std::string>{"classifier.0"}));
  EXPECT_EQ(count_nodes(graph, "dropout"), 2);
  EXPECT_EQ(count_nodes(build_model("vgg16"), "dropout"), 2);
  EXPECT_EQ(count_nodes(build_model("vgg16:dropout=0"), "dropout"), 0);
}

// He et al. 2016 give 1.7 M and 10.2 M parameters; as many layers with weights as the names say,
// not counting shortcuts.
TEST(Classifiers, ResidualNetworksWithPreActivation) {
  const Graph net110 = build_model("resnet110_v2"), net1001 = build_model("resnet1001_v2");
  EXPECT_EQ(net110.num_trainable(), 1'730'522);
  EXPECT_EQ(count_nodes(net110, "convolution") - 2 + 1, 110);
  EXPECT_EQ(net1001.num_trainable(), 10'327'706);
  EXPECT_EQ(count_nodes(net1001, "convolution") - 3 + 1, 1001);
  const Graph bottlenecks = build_model("resnet110_v2:block=bottleneck,blocks=12");
  EXPECT_EQ(count_nodes(bottlenecks, "convolution") - 3 + 1, 110);

  const auto values = shapes_by_name(net1001);
  EXPECT_EQ(values.at("stage1.110.add"), (Shape{2, 64, 32, 32}));
  EXPECT_EQ(values.at("stage2.0.shortcut"), (Shape{2, 128, 16, 16}));
  EXPECT_EQ(values.at("relu"), (Shape{2, 256, 8, 8}));
  const auto parameters = parameters_of("resnet110_v2:width=3,blocks=2");
  EXPECT_EQ(parameters.at("stem.weight"), (Shape{3, 3, 3, 3}));
  EXPECT_EQ(parameters.at("stage3.0.norm1.weight"), (Shape{6}));
  EXPECT_EQ(parameters.at("stage3.0.shortcut.weight"), (Shape{12, 6, 1, 1}));
  EXPECT_FALSE(parameters.contains("stage1.0.shortcut.weight"));
}

TEST(Classifiers, IdentitiesOfPreActivationAreBare) {
  const Graph graph = build_model("resnet110_v2:blocks=2");
  const auto shortcut = [&](const std::string& block) {
    return inputs_of(graph, block + ".add")[1];
  };
  EXPECT_EQ(shortcut("stage1.0"), "stage1.0.relu1");  // the first block splits after it
  EXPECT_EQ(shortcut("stage1.1"), "stage1.0.add");
  EXPECT_EQ(shortcut("stage2.0"), "stage2.0.shortcut");
  EXPECT_EQ(shortcut("stage2.1"), "stage2.0.add");
}

}  // namespace
}  // namespace tessera::classifiers_test
