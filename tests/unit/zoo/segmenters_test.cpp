// The variants of the U-Net: shapes, names, and what joins what.

#include <gtest/gtest.h>

#include <map>

#include "tessera/base/error.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/named_shapes.h"

namespace tessera::segmenters_test {
namespace {

void expect_shapes(const Graph& graph, const std::map<std::string, Shape>& expected) {
  const auto shapes = shapes_by_name(graph);
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(shapes.contains(name)) << name;
    EXPECT_EQ(shapes.at(name), shape) << name;
  }
}

TEST(Segmenters, UnetWithoutPaddingHasThePapersSizes) {
  const Graph graph = build_model("unet2d_valid");
  expect_shapes(graph, {{"enc1.relu2", {1, 64, 568, 568}},
                        {"pool1", {1, 64, 284, 284}},
                        {"enc4.relu2", {1, 512, 64, 64}},
                        {"bottleneck.relu2", {1, 1024, 28, 28}},
                        {"up4", {1, 512, 56, 56}},
                        {"crop4", {1, 512, 56, 56}},
                        {"dec4.relu2", {1, 512, 52, 52}},
                        {"crop1", {1, 64, 392, 392}},
                        {"dec1.relu2", {1, 64, 388, 388}},
                        {"head", {1, 2, 388, 388}},
                        {"target", {1, 388, 388}}});
  EXPECT_EQ(graph.num_trainable(), 31'030'658);
  for (const Value& value : graph.values()) EXPECT_FALSE(value.name.ends_with(".pad"));
}

TEST(Segmenters, UnetWithoutPaddingLosesTheSameAtBothEnds) {
  for (int64_t size : {188, 204, 300}) {
    const Graph graph = build_model("unet2d_valid:base=1", {1, 1, size, 188});
    EXPECT_EQ(graph.type(graph.outputs()[0]).shape(), (Shape{1, 2, size - 184, 4}));
  }
  const Graph shallow = build_model("unet2d_valid:base=1,depth=2", {1, 1, 18, 32});
  EXPECT_EQ(shallow.type(shallow.outputs()[0]).shape(), (Shape{1, 2, 2, 16}));
}

TEST(Segmenters, AttentionGates) {
  const Graph graph = build_model("attention_unet2d:base=4,depth=3,classes=5", {2, 3, 23, 14});
  expect_shapes(graph, {{"gate2.skip", {2, 4, 5, 3}},
                        {"gate2.signal", {2, 4, 5, 3}},
                        {"gate2.sigmoid", {2, 1, 5, 3}},
                        {"gate2.resample", {2, 1, 11, 7}},
                        {"gate2.multiply", {2, 8, 11, 7}},
                        {"up1.pad", {2, 4, 23, 14}},
                        {"head", {2, 5, 23, 14}}});
  const auto parameters = parameters_by_name(graph);
  EXPECT_EQ(parameters.at("gate1.skip.weight"), (Shape{2, 4, 2, 2}));
  EXPECT_EQ(parameters.at("gate1.signal.weight"), (Shape{2, 8, 1, 1}));
  EXPECT_EQ(parameters.at("gate1.psi.bias"), (Shape{1}));
  EXPECT_FALSE(parameters.contains("gate1.skip.bias"));
  EXPECT_EQ(inputs_of(graph, "dec2.concat"),
            (std::vector<std::string>{"gate2.multiply", "up2.pad"}));
}

TEST(Segmenters, ResidualUnetAtOddSizes) {
  const Graph graph = build_model("resunet2d:base=4,depth=3,classes=5", {2, 3, 23, 14});
  expect_shapes(graph, {{"enc1.add", {2, 4, 23, 14}},
                        {"enc2.conv1", {2, 8, 12, 7}},
                        {"enc2.shortcut", {2, 8, 12, 7}},
                        {"bottleneck.add", {2, 16, 6, 4}},
                        {"up2", {2, 16, 12, 8}},
                        {"up2.crop", {2, 16, 12, 7}},
                        {"dec2.concat", {2, 24, 12, 7}},
                        {"up1", {2, 8, 24, 14}},
                        {"up1.crop", {2, 8, 23, 14}},
                        {"dec1.add", {2, 4, 23, 14}},
                        {"head", {2, 5, 23, 14}}});
  const auto parameters = parameters_by_name(graph);
  EXPECT_FALSE(parameters.contains("enc1.norm1.weight"));
  EXPECT_EQ(parameters.at("enc2.norm1.weight"), (Shape{4}));
  EXPECT_EQ(parameters.at("dec2.norm1.running_mean"), (Shape{24}));
  EXPECT_FALSE(parameters.contains("enc2.conv1.bias"));
  EXPECT_TRUE(parameters.contains("enc2.conv2.bias"));
  EXPECT_TRUE(parameters_by_name(build_model("resunet2d:norm=none")).contains("enc2.conv1.bias"));
}

TEST(Segmenters, StridesOfResampledMapsAreThoseOfTheirLevel) {
  const Graph graph = build_model("resunet2d:base=1,depth=4", {2, 1, 27, 16});
  for (const Value& value : graph.values()) {
    const ValueType& type = value.type;
    for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis)
      EXPECT_EQ(type.axes[axis].stride.den, 1) << value.name;
  }
}

TEST(Segmenters, NormsOfAnyKindHaveTheSameNames) {
  for (const char* model : {"unet2d", "unet2d_valid", "attention_unet2d", "resunet2d"}) {
    SCOPED_TRACE(model);
    const auto with = [&](const char* norm) {
      return parameters_by_name(build_model(
          fmt::format("{}:base=4,depth=3,groups=2,norm={}", model, norm), {2, 1, 60, 60}));
    };
    const auto batch = with("batch"), instance = with("instance"), group = with("group");
    const auto none = with("none");
    EXPECT_EQ(group.at("enc1.norm2.weight"), Shape{4});
    EXPECT_EQ(instance.at("enc2.norm1.bias"), batch.at("enc2.norm1.bias"));
    EXPECT_FALSE(instance.contains("enc1.norm2.running_mean"));
    EXPECT_FALSE(group.contains("enc1.norm2.running_mean"));
    EXPECT_FALSE(none.contains("enc1.norm2.weight"));
    // A mean over several channels leaves what their biases differ in.
    EXPECT_FALSE(instance.contains("enc2.conv1.bias"));
    EXPECT_TRUE(group.contains("enc2.conv1.bias"));
    EXPECT_TRUE(none.contains("enc2.conv1.bias"));
  }
  EXPECT_THROW(build_model("unet2d:base=6,norm=group,groups=4", {1, 1, 32, 32}), InvalidInput);
}

}  // namespace
}  // namespace tessera::segmenters_test
