// How the models' parameters start. tests/zoo compares their distributions with torchvision's.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/zoo/zoo.h"

namespace tessera::initial_weights_test {
namespace {

using Kind = Initial::Kind;

Initial initial_of(const Graph& graph, const std::string& name) {
  for (const Parameter& parameter : graph.parameters())
    if (parameter.name == name) return parameter.initial;
  ADD_FAILURE() << name;
  return {};
}

void expect(const Graph& graph, const std::string& name, Kind kind, double value) {
  const Initial initial = initial_of(graph, name);
  EXPECT_EQ(initial.kind, kind) << name;
  EXPECT_DOUBLE_EQ(initial.value, value) << name;
}

TEST(InitialWeights, OfVgg) {
  const Graph graph = build_model("vgg11:width=8");
  expect(graph, "features.0.weight", Kind::kNormal, std::sqrt(2.0 / (8 * 9)));
  expect(graph, "features.0.bias", Kind::kConstant, 0);
  expect(graph, "classifier.3.weight", Kind::kNormal, 0.01);
  expect(graph, "classifier.6.bias", Kind::kConstant, 0);
  expect(build_model("vgg11:norm=batch,width=8"), "features.1.weight", Kind::kConstant, 1);
}

TEST(InitialWeights, OfResnetDensenetAndMobilenet) {
  const Graph resnet = build_model("resnet18:width=16");
  expect(resnet, "layer2.0.downsample.0.weight", Kind::kNormal, std::sqrt(2.0 / 32));
  expect(resnet, "fc.weight", Kind::kUniform, 1 / std::sqrt(128.0));
  expect(resnet, "fc.bias", Kind::kUniform, 1 / std::sqrt(128.0));
  const Graph densenet = build_model("densenet121:growth=4");
  expect(densenet, "features.conv0.weight", Kind::kNormal, std::sqrt(2.0 / (3 * 49)));
  expect(densenet, "classifier.bias", Kind::kConstant, 0);
  EXPECT_EQ(initial_of(densenet, "classifier.weight").kind, Kind::kUniform);
  const Graph mobilenet = build_model("mobilenet_v2");  // 96 filters of one channel each
  expect(mobilenet, "features.2.conv.1.0.weight", Kind::kNormal, std::sqrt(2.0 / (96 * 9)));
  expect(mobilenet, "classifier.1.weight", Kind::kNormal, 0.01);
}

TEST(InitialWeights, OfInception) {
  const Graph graph = build_model("inception_v3:width=4");
  expect(graph, "Mixed_6a.branch3x3.conv.weight", Kind::kNormal, 0.1);
  // torchvision sets stddev = 0.01 on the block around this convolution, where its own code does
  // not look.
  expect(graph, "AuxLogits.conv1.conv.weight", Kind::kNormal, 0.1);
  expect(graph, "AuxLogits.fc.weight", Kind::kNormal, 0.001);
  expect(graph, "fc.weight", Kind::kNormal, 0.1);
  EXPECT_EQ(initial_of(graph, "fc.bias").kind, Kind::kUniform);
}

TEST(InitialWeights, OfOthersArePyTorchsLayers) {
  const Graph alexnet = build_model("alexnet:width=8");
  expect(alexnet, "features.0.weight", Kind::kUniform, 1 / std::sqrt(3.0 * 121));
  expect(alexnet, "features.0.bias", Kind::kUniform, 1 / std::sqrt(3.0 * 121));
  const Graph fcn = build_model("fcn2d:width=0.25");
  expect(fcn, "features.0.weight", Kind::kNormal, std::sqrt(2.0 / (16 * 9)));
  expect(fcn, "features.0.bias", Kind::kConstant, 0);
  expect(fcn, "fc7.weight", Kind::kUniform, 1 / std::sqrt(1024.0));
}

}  // namespace
}  // namespace tessera::initial_weights_test
