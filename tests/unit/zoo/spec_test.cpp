// What users may write for a model, and what they read where it is wrong.

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tessera/base/error.h"
#include "tessera/zoo/zoo.h"

namespace tessera::spec_test {
namespace {

/// The message of the InvalidInput that `build_model` throws; empty where it throws none.
std::string refusal(const std::string& spec, const Shape& input = {}) {
  try {
    build_model(spec, input);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

void expect_refusal(const std::string& spec, const Shape& input, const std::string& part) {
  const std::string message = refusal(spec, input);
  EXPECT_NE(message.find(part), std::string::npos)
      << spec << " " << to_string(input) << " gave '" << message << "', without '" << part << "'";
}

TEST(Spec, EveryModelBuildsFromItsDefaults) {
  std::set<std::string> names;
  for (const ModelInfo& model : models()) {
    SCOPED_TRACE(model.name);
    EXPECT_TRUE(names.insert(model.name).second);
    EXPECT_EQ(&find_model(model.name), &model);
    EXPECT_FALSE(model.summary.empty());
    EXPECT_EQ(model.summary.find('\n'), std::string::npos);
    EXPECT_EQ(static_cast<int>(model.default_input.size()), model.num_spatial + 2);

    std::string all_options = model.name + ":";
    for (const OptionInfo& option : model.options) {
      EXPECT_FALSE(option.help.empty());
      all_options += option.name + "=" + option.default_value + ",";
    }
    all_options.pop_back();
    const Graph graph = build_model(model.name), same = build_model(all_options);
    EXPECT_EQ(graph.type(graph.inputs()[0]).shape(), model.default_input);
    EXPECT_EQ(graph.num_trainable(), same.num_trainable());
  }
  for (const char* name : {"alexnet",        "attention_unet2d", "cnn1d",          "cnn2d",
                           "cnn3d",          "densenet121",      "fcn2d",          "inception_v3",
                           "mobilenet_v2",   "resnet18",         "resnet34",       "resnet50",
                           "resnet101",      "resnet152",        "resnet_chain1d", "resnet_chain2d",
                           "resnet_chain3d", "resnet110_v2",     "resnet1001_v2",  "resunet2d",
                           "unet2d",         "unet2d_valid",     "unet3d",         "vgg16",
                           "vgg19"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Spec, RefusesUnknownModelsAndNamesTheKnown) {
  for (const char* spec : {"", ":", ":base=4", "unet", "UNET2D", "unet2d base=4", " unet2d"}) {
    expect_refusal(spec, {}, "known: alexnet, ");
    expect_refusal(spec, {}, ", unet2d, unet2d_valid, unet3d, ");
    EXPECT_THROW(find_model(spec), InvalidInput) << spec;
  }
}

TEST(Spec, RefusesMalformedOptionsAndNamesTheLegal) {
  const std::string legal = "; write key=value; legal: base, depth, classes, norm, groups";
  const std::pair<const char*, std::string> cases[] = {
      {"unet2d:", "[unet2d] nothing follows the ':'"},
      {"unet2d:,", "[unet2d] '' is not an option"},
      {"unet2d:base=4,", "'' is not an option"},
      {"unet2d:base=4,,depth=2", "'' is not an option"},
      {"unet2d:=4", "'=4' is not an option"},
      {"unet2d:base", "'base' is not an option"},
      {"unet2d:base=", "'base=' is not an option"},
      {"unet2d:base=4,depth", "'depth' is not an option"},
  };
  for (const auto& [spec, what] : cases) {
    expect_refusal(spec, {}, what + legal);
    EXPECT_THROW(find_model(spec), InvalidInput) << spec;
  }
  expect_refusal("unet2d:base=4,base=4", {}, "[unet2d] option 'base' is given twice; give it once");
  EXPECT_THROW(find_model("unet2d:base=4,base=4"), InvalidInput);
}

TEST(Spec, RefusesUnknownOptionsAndNamesTheLegal) {
  expect_refusal("unet2d:width=2", {},
                 "[unet2d] has no option 'width'; legal: base, depth, classes, norm, groups");
  expect_refusal("fcn2d:base=2", {},
                 "[fcn2d] has no option 'base'; legal: width, classes, dropout");
  expect_refusal("unet2d: base=2", {}, "has no option ' base'");
  EXPECT_THROW(find_model("unet2d:Base=2"), InvalidInput);
}

TEST(Spec, RefusesValuesAndNamesTheLegal) {
  for (const char* value : {"0", "-4", "4097", "4.0", "x", "4x", " 4", "+4", "4=4", "0x4", "1e1",
                            "99999999999999999999"}) {
    const std::string option = std::string("base=") + value;
    expect_refusal("unet2d:" + option, {},
                   "[unet2d] option " + option + " must be an integer from 1 to 4096");
  }
  for (const char* value : {"0", "-1", "nan", "inf", "1,5", "0x1", "", "1e9"})
    EXPECT_NE(refusal(std::string("fcn2d:width=") + value), "") << value;
  expect_refusal("fcn2d:width=0", {}, "option width=0 must be a number from 0.001 to 8");
  expect_refusal("fcn2d:dropout=1.5", {}, "option dropout=1.5 must be a number from 0 to 1");
  expect_refusal("unet3d:norm=Batch", {},
                 "option norm=Batch must be one of: batch, instance, group, none");
  expect_refusal("unet2d:depth=1", {}, "from 2 to 12");
  expect_refusal("cnn2d:depth=0", {}, "from 1 to 12");
  expect_refusal("cnn1d:classes=0", {}, "from 1 to 65536");
}

TEST(Spec, RefusesInputsOfTheWrongForm) {
  expect_refusal("unet2d", {1, 3, 64},
                 "[unet2d] input 1x3x64 has 3 axes; give 4: batch x channels x 2 spatial, such as "
                 "1x3x256x256");
  EXPECT_NE(refusal("cnn1d", {1, 3, 64, 64}), "");
  EXPECT_NE(refusal("unet3d", {1, 3, 64, 64}), "");
  EXPECT_NE(refusal("cnn3d", {1, 1, 1, 64, 64, 64, 64}), "");
  for (const Shape& input : {Shape{0, 3, 64, 64}, {1, 0, 64, 64}, {1, 3, 0, 64}, {1, 3, 64, -64}})
    expect_refusal("unet2d", input, "each size must be at least 1");
}

TEST(Spec, RefusesSmallInputsAndNamesTheLeastSize) {
  expect_refusal("unet2d", {1, 3, 64, 15},
                 "[unet2d] input 1x3x64x15: size 15 of spatial axis 1 is too small; the least size "
                 "is 16 with depth 5; use a larger input or less depth");
  expect_refusal("unet3d:depth=3", {1, 3, 3, 4, 4}, "the least size is 4");
  expect_refusal("cnn1d:depth=6", {2, 1, 63}, "the least size is 64");
  expect_refusal("fcn2d", {1, 3, 31, 32},
                 "size 31 of spatial axis 0 is too small; the least size "
                 "is 32");
  expect_refusal("alexnet", {1, 3, 63, 62}, "the least size is 63");
  expect_refusal("vgg16", {1, 3, 31, 64}, "the least size is 32");
  expect_refusal("densenet121", {1, 3, 28, 64}, "the least size is 29");
  expect_refusal("inception_v3", {2, 3, 298, 299},
                 "the least size is 299 with aux=yes, and 75 with aux=no");
  expect_refusal("inception_v3:aux=no", {2, 3, 75, 74}, "the least size is 75");
  expect_refusal("attention_unet2d:depth=3", {1, 3, 3, 4}, "the least size is 4");
  expect_refusal("unet2d_valid", {1, 1, 187, 188}, "the least size is 188 with depth 5");
  expect_refusal("unet2d_valid", {1, 1, 572, 575},
                 "size 575 of spatial axis 1 leaves a row over in a pooling; with depth 5 sizes "
                 "are 188 plus multiples of 16, such as 572 or 588");
  for (const auto& [spec, input] :
       {std::pair<const char*, Shape>{"unet2d:base=1,norm=none", {1, 3, 16, 16}},
        {"alexnet", {1, 3, 63, 63}},
        {"vgg11", {1, 3, 32, 32}},
        {"densenet121", {2, 3, 29, 29}},
        {"inception_v3:aux=no", {2, 3, 75, 75}},
        {"unet2d_valid", {1, 1, 188, 204}},
        {"resunet2d:depth=3", {2, 1, 1, 3}},
        {"resnet18", {2, 3, 1, 1}},
        {"unet3d:base=1,depth=3", {2, 1, 4, 4, 4}},
        {"cnn1d:depth=6", {2, 1, 64}},
        {"fcn2d:width=0.01", {1, 3, 32, 32}}})
    EXPECT_EQ(refusal(spec, input), "");
  // The batch norm itself refuses what has no variance.
  expect_refusal("unet2d", {1, 3, 16, 16}, "[batch_norm bottleneck.norm1]");
}

TEST(Spec, RefusesMoreElementsThanCanBeCounted) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  for (const Shape& input : {Shape{1, 1, huge},
                             {huge, huge, huge},
                             {1, huge, 1024},
                             {2, 1, huge},
                             {int64_t{1} << 32, 1, int64_t{1} << 32},
                             {1, 1, int64_t{1} << 49}})
    expect_refusal("cnn1d", input, "has more than 2^48 elements");
  expect_refusal("cnn1d", {1, 1, int64_t{1} << 48}, "[convolution block1.conv] its output");
  expect_refusal("cnn1d", {1, int64_t{1} << 44, 16}, "parameter block1.conv.weight of shape");
  EXPECT_EQ(refusal("unet2d:base=16", {1, 3, 200'000, 200'000}), "");
}

}  // namespace
}  // namespace tessera::spec_test
