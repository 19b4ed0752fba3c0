// Images and targets in a pair of files: shapes that fit each other, boxes, labels that are
// checked.

#include "tessera/data/file_dataset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/data/open.h"
#include "tests/unit/data/npy_bytes.h"

namespace tessera::file_pair_test {
namespace {

template <class T>
std::vector<T> counting(int64_t count, int64_t modulus) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i % modulus));
  return values;
}

class FilePairTest : public testing::Test {
 protected:
  template <class T>
  void images(const std::string& descr, const std::string& shape, int64_t count) {
    write_bytes(folder_.file("images.npy"), npy_of<T>(descr, shape, counting<T>(count, 251)));
  }
  template <class T>
  void targets(const std::string& descr, const std::string& shape, const std::vector<T>& labels) {
    write_bytes(folder_.file("targets.npy"), npy_of<T>(descr, shape, labels));
  }
  std::unique_ptr<Dataset> open(const Shape& shape, const std::string& options = "",
                                int64_t num_classes = 0,
                                ChannelAxis channels = ChannelAxis::kFirst) {
    return open_dataset(fmt::format("npy:{},{}{}", folder_.file("images.npy"),
                                    folder_.file("targets.npy"), options),
                        shape, 1, num_classes, channels);
  }
  std::string refusal(const Shape& shape, const std::string& options = "") {
    return message_of<InvalidInput>([&] { open(shape, options); });
  }
  ScratchFolder folder_;
};

TEST_F(FilePairTest, PerPixel) {
  images<uint8_t>("|u1", "(2, 3, 4, 5)", 120);
  targets<uint8_t>("|u1", "(2, 4, 5)", counting<uint8_t>(40, 4));
  const auto data = open({3, 4, 5});
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->num_classes(), 4);
  EXPECT_TRUE(data->per_pixel());
  at::Tensor image = at::empty({2, 2, 3}), labels = at::empty({2, 3}, at::kLong);
  data->load_image(1, {{1, 3}, {2, 4}, {1, 4}}, image);
  EXPECT_EQ(image[0][0][0].item<float>(), 60 + 20 + 10 + 1);
  EXPECT_EQ(image[1][1][2].item<float>(), 60 + 40 + 15 + 3);
  data->load_target(1, {{2, 4}, {1, 4}}, labels);
  EXPECT_EQ(labels[1][2].item<int64_t>(), (20 + 15 + 3) % 4);
}

TEST_F(FilePairTest, ImagesAloneAreToBePredicted) {
  images<uint8_t>("|u1", "(2, 4, 5)", 40);
  const std::string spec = "npy:" + folder_.file("images.npy");
  const auto data = open_dataset(spec, {1, 8, 8}, 1, 3, ChannelAxis::kFirst, ImageSizes::kAny);
  EXPECT_FALSE(data->has_targets());
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->image_shape(), (Shape{1, 4, 5})) << "any size will do";
  const std::string fixed = message_of<InvalidInput>([&] { open_dataset(spec, {1, 8, 8}, 1); });
  EXPECT_NE(fixed.find("need Nx1x8x8"), std::string::npos) << fixed;
  const std::string two = message_of<InvalidInput>([&] {
    open_dataset(spec, {2, 8, 8}, 1, 3, ChannelAxis::kFirst, ImageSizes::kAny);
  });
  EXPECT_NE(two.find("the file's shape is 2x4x5"), std::string::npos) << two;
}

TEST_F(FilePairTest, OneChannelMayBeLeftOut) {
  images<int16_t>("<i2", "(2, 4, 5)", 40);
  targets<int64_t>("<i8", "(2, 4, 5)", counting<int64_t>(40, 3));
  for (const Shape& shape : {Shape{1, 4, 5}, Shape{}}) {
    const auto data = open(shape);
    EXPECT_EQ(data->image_shape(), (Shape{1, 4, 5}));
    at::Tensor image = at::empty({1, 1, 5}, at::kDouble);
    data->load_image(1, {{0, 1}, {3, 4}, {0, 5}}, image);
    EXPECT_EQ(image[0][0][4].item<double>(), 39);
  }
}

TEST_F(FilePairTest, PerSampleInOneAndThreeDimensions) {
  images<float>("<f4", "(3, 2, 10)", 60);
  targets<int32_t>("<i4", "(3,)", {4, 0, 2});
  const auto data = open({2, 10});
  EXPECT_FALSE(data->per_pixel());
  EXPECT_EQ(data->num_classes(), 5);
  at::Tensor label = at::empty({}, at::kLong);
  data->load_target(2, Box(), label);
  EXPECT_EQ(label.item<int64_t>(), 2);
  images<float>("<f4", "(3, 1, 2, 3, 4)", 72);
  at::Tensor image = at::empty({1, 2, 3, 4});
  open({1, 2, 3, 4})->load_image(2, Box::whole({1, 2, 3, 4}), image);
  EXPECT_EQ(image.view({24})[23].item<float>(), 71);
}

TEST_F(FilePairTest, LabelsAreCheckedWhereTheyAreRead) {
  images<float>("<f4", "(2, 1, 2, 3)", 12);
  targets<int64_t>("<i8", "(2, 2, 3)", {0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 9, -1});
  const auto data = open({1, 2, 3}, ",classes=3");
  at::Tensor labels = at::empty({2, 3}, at::kLong);
  EXPECT_NO_THROW(data->load_target(0, Box::whole({2, 3}), labels));
  const std::string message = message_of<InvalidInput>([&] {
    data->load_target(1, Box::whole({2, 3}), labels);
  });
  EXPECT_NE(message.find("label 9 in sample 1 at position (1x1); legal: 0 to 2"), std::string::npos)
      << message;
  EXPECT_NO_THROW(data->load_target(1, {{0, 2}, {0, 1}}, labels.narrow(1, 0, 1)));
  EXPECT_THROW(data->load_target(1, {{1, 2}, {2, 3}}, at::empty({1, 1}, at::kLong)), InvalidInput);
}

/// Any box, of strided targets, too, is the same as if the file had its channels first.
TEST_F(FilePairTest, ChannelsLastAreReadAsChannelsFirst) {
  images<float>("<f4", "(2, 4, 5, 3)", 120);
  targets<uint8_t>("|u1", "(2, 4, 5)", counting<uint8_t>(40, 4));
  const auto data = open({3, 4, 5}, "", 0, ChannelAxis::kLast);
  EXPECT_EQ(data->image_shape(), (Shape{3, 4, 5}));
  const at::Tensor file = at::arange(120, at::kFloat).view({2, 4, 5, 3});
  at::Tensor whole = at::empty({3, 4, 5}, at::kDouble);
  data->load_image(1, Box::whole({3, 4, 5}), whole);
  EXPECT_TRUE(whole.equal(file[1].permute({2, 0, 1}).to(at::kDouble)));
  at::Tensor wide = at::zeros({3, 4, 9});
  data->load_image(1, {{1, 3}, {2, 4}, {1, 4}}, wide.slice(0, 0, 2).slice(1, 1, 3).slice(2, 3, 6));
  const at::Tensor part = file[1].permute({2, 0, 1}).slice(0, 1, 3).slice(1, 2, 4).slice(2, 1, 4);
  EXPECT_TRUE(wide.slice(0, 0, 2).slice(1, 1, 3).slice(2, 3, 6).equal(part));
  EXPECT_EQ(wide.sum().item<float>(), part.sum().item<float>()) << "written beside the box";
  at::Tensor labels = at::empty({4, 5}, at::kLong);
  data->load_target(1, Box::whole({4, 5}), labels);
  EXPECT_EQ(labels[0][0].item<int64_t>(), 20 % 4);
}

TEST_F(FilePairTest, ChannelsLastInOneAndThreeDimensionsAndOfNumbers) {
  images<float>("<f4", "(2, 7, 2)", 28);
  targets<double>("<f8", "(2, 7, 3)", counting<double>(42, 100));
  const auto line = open({2, 7}, "", 0, ChannelAxis::kLast);
  EXPECT_EQ(line->target_shape(), (Shape{3, 7}));
  at::Tensor numbers = at::empty({2, 7}, at::kDouble);
  line->load_target(1, {{1, 3}, {0, 7}}, numbers);
  EXPECT_EQ(numbers[1][6].item<double>(), 21 + 6 * 3 + 2);
  images<float>("<f4", "(2, 2, 3, 4, 2)", 96);
  targets<uint8_t>("|u1", "(2,)", {0, 1});
  at::Tensor volume = at::empty({2, 2, 3, 4});
  open({2, 2, 3, 4}, "", 0, ChannelAxis::kLast)->load_image(1, Box::whole({2, 2, 3, 4}), volume);
  EXPECT_EQ(volume[1][1][2][3].item<float>(), 95);
  EXPECT_EQ(volume[1][0][0][0].item<float>(), 49);
}

TEST_F(FilePairTest, ChannelsAtTheOtherEndAreRecognised) {
  images<float>("<f4", "(2, 4, 5, 3)", 120);
  targets<uint8_t>("|u1", "(2, 4, 5)", counting<uint8_t>(40, 4));
  EXPECT_NE(refusal({3, 4, 5}).find("which has the channels last"), std::string::npos);
  EXPECT_NE(refusal({3, 4, 5}).find("--channels-last takes the file as it is"), std::string::npos);
  EXPECT_NE(refusal({3, 4, 6}).find("give the file's sizes as --input"), std::string::npos);
  const auto refused_last = [&](const Shape& shape) {
    return message_of<InvalidInput>([&] { open(shape, "", 0, ChannelAxis::kLast); });
  };
  EXPECT_NE(refused_last({4, 5, 3}).find("leave --channels-last out"), std::string::npos);
  EXPECT_NE(refused_last({3, 4, 6}).find("need Nx4x6x3"), std::string::npos)
      << refused_last({3, 4, 6});
  EXPECT_NE(message_of<InvalidInput>([] {
              open_dataset("synthetic", {1, 64}, 1, 0, ChannelAxis::kLast);
            }).find("[--channels-last] is for files"),
            std::string::npos);
}

TEST_F(FilePairTest, IgnoredLabels) {
  images<float>("<f4", "(1, 1, 4)", 4);
  targets<uint8_t>("|u1", "(1, 4)", {0, 255, 1, 255});
  const auto data = open({1, 4}, ",ignore=255");
  EXPECT_EQ(data->num_classes(), 2);  // 255 is not a class
  at::Tensor labels = at::empty({4}, at::kLong);
  data->load_target(0, Box::whole({4}), labels);
  EXPECT_TRUE(labels.equal(at::tensor({0, -100, 1, -100}, at::kLong)));
  targets<int16_t>("<i2", "(1, 4)", {0, -100, 1, 1});
  open({1, 4})->load_target(0, Box::whole({4}), labels);
  EXPECT_EQ(labels[1].item<int64_t>(), kIgnoreLabel);
}

TEST_F(FilePairTest, ClassesComeFromTheOptionTheModelOrTheFile) {
  images<float>("<f4", "(2, 1, 4)", 8);
  targets<uint8_t>("|u1", "(2,)", {0, 6});
  EXPECT_EQ(open({1, 4})->num_classes(), 7);
  EXPECT_EQ(open({1, 4}, "", 10)->num_classes(), 10);
  EXPECT_EQ(open({1, 4}, ",classes=8", 10)->num_classes(), 8);
}

/// Targets of another size than the images (super-resolution), and numbers instead of labels.
TEST_F(FilePairTest, RealTargets) {
  images<float>("<f4", "(2, 1, 2, 2)", 8);
  targets<float>("<f4", "(2, 1, 2, 4)", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  const auto data = open({1, 2, 2});
  EXPECT_TRUE(data->real_targets());
  EXPECT_EQ(data->target_shape(), (Shape{1, 2, 4}));
  at::Tensor part = at::empty({1, 1, 2}, at::kDouble);
  data->load_target(1, Box{{0, 1}, {1, 2}, {2, 4}}, part);
  EXPECT_TRUE(part.equal(at::tensor({14., 15.}, at::kDouble).view({1, 1, 2})));
}

TEST_F(FilePairTest, OneNumberEachLeavesTheChannelOut) {
  images<float>("<f4", "(3, 1, 4)", 12);
  targets<double>("<f8", "(3,)", {0.5, 1.5, -2.5});
  const auto data = open({1, 4});
  EXPECT_EQ(data->target_shape(), (Shape{1}));
  at::Tensor target = at::zeros({1}, at::kDouble);
  data->load_target(2, Box{{0, 1}}, target);
  EXPECT_EQ(target.item<double>(), -2.5);
  EXPECT_NO_THROW(data->load_target(1, Box{{1, 1}}, at::zeros({0}, at::kDouble)))
      << "a rank without the channel";
}

TEST_F(FilePairTest, OptionsSayHowFilesAreOpened) {
  write_bytes(folder_ / "i.raw", std::string("\x01\x02\x03\x04\x05\x06\x07\x08", 8));
  write_bytes(folder_ / "m.raw", std::string("\x00\x01\x00\x01", 4));
  const std::string pair = "files:" + (folder_ / "i.raw") + "," + (folder_ / "m.raw");
  const auto data = open_dataset(
      pair + ",shape=2x1x2,type=uint16,mask_shape=2x2,mask_type=uint8,classes=2", {1, 2}, 1);
  at::Tensor image = at::empty({1, 2}), labels = at::empty({2}, at::kLong);
  data->load_image(1, Box::whole({1, 2}), image);
  data->load_target(1, Box::whole({2}), labels);
  EXPECT_TRUE(image.equal(at::tensor({0x0605, 0x0807}).to(at::kFloat).view({1, 2})));
  EXPECT_TRUE(labels.equal(at::tensor({0, 1}, at::kLong)));
  const auto refused = [&](const std::string& options, const std::string& words) {
    expect_refusal([&] { open_dataset(pair + options, {1, 2}, 1); }, words);
  };
  refused(",shape=2xx", "shape");
  refused(",type=int7", "int7");
  refused(",pages=layers", "must be one of: channels, depth, samples");
  refused(",mpp=0", "mpp=0 must be a number");
  refused(",split=test", "split= is for folders and lists");
}

/// Images alone are for prediction.
TEST_F(FilePairTest, MayLackTargets) {
  images<float>("<f4", "(2, 1, 4)", 8);
  const auto data = open_dataset("files:" + folder_.file("images.npy"), {1, 4}, 1);
  EXPECT_EQ(data->size(), 2);
  EXPECT_FALSE(data->has_targets());
  EXPECT_EQ(data->image_shape(), (Shape{1, 4}));
}

TEST_F(FilePairTest, OtherSizesAreTakenWhereTheyMayDiffer) {
  images<float>("<f4", "(2, 3, 4, 5)", 120);
  targets<uint8_t>("|u1", "(2, 4, 5)", counting<uint8_t>(40, 4));
  const std::string spec =
      "files:" + folder_.file("images.npy") + "," + folder_.file("targets.npy");
  const auto data = open_dataset(spec, {3, 2, 2}, 1, 0, ChannelAxis::kFirst, ImageSizes::kAny);
  EXPECT_EQ(data->image_shape(), (Shape{3, 4, 5}));
  expect_refusal(
      [&] {
        open_dataset(spec, {2, 4, 5}, 1, 0, ChannelAxis::kFirst, ImageSizes::kAny);
      },
      "images of 2x4x5");
}

TEST_F(FilePairTest, RefusesWhatDoesNotFit) {
  images<float>("<f4", "(2, 3, 4, 5)", 120);
  targets<uint8_t>("|u1", "(3, 5, 4)", counting<uint8_t>(60, 3));
  EXPECT_NE(refusal({3, 4, 5}).find("targets' shape 3x5x4 does not fit 2 images"),
            std::string::npos);
  targets<uint8_t>("|u1", "(3,)", {0, 1, 2});
  EXPECT_NE(
      refusal({3, 4, 5}).find("samples x spatial (labels per pixel), samples (one per image)"),
      std::string::npos);
  targets<uint8_t>("|u1", "(2,)", {0, 1});
  EXPECT_NE(refusal({3, 4, 6}).find("the file's shape is 2x3x4x5"), std::string::npos);
  EXPECT_NE(refusal({3, 4}).find("the file's shape is 2x3x4x5"), std::string::npos);
  EXPECT_NE(refusal({3, 4, 5}, ",classses=3")
                .find("has no option 'classses' (did you mean classes?); legal: classes, ignore"),
            std::string::npos);
  EXPECT_NE(refusal({3, 4, 5}, ",classes=0").find("classes=0 must be an integer from 1 to 65536"),
            std::string::npos);
  images<float>("<f4", "(4,)", 4);
  EXPECT_NE(refusal({1, 4}).find("samples x channels"), std::string::npos);
  images<float>("<f4", "(0, 1, 4)", 0);
  EXPECT_NE(refusal({1, 4}).find("samples x channels"), std::string::npos);
}

}  // namespace
}  // namespace tessera::file_pair_test
