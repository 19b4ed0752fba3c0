// Sets of many files: sizes, channels of several files, masks and their values, parts, weights.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "tessera/data/label_counts.h"
#include "tessera/data/open.h"
#include "tessera/data/subset.h"
#include "tests/unit/data/npy_bytes.h"

namespace tessera::file_set_test {
namespace {

template <class T>
constexpr const char* kDescr = sizeof(T) == 1   ? "|u1"
                               : sizeof(T) == 2 ? "<i2"
                                                : "<f4";

class FileSetTest : public testing::Test {
 protected:
  /// Numbers that count up from `first`, modulo 251.
  template <class T = float>
  void image(const std::string& name, const Shape& shape, int64_t first = 0) {
    std::vector<T> numbers(static_cast<size_t>(Box::whole(shape).volume()));
    for (T& number : numbers) number = static_cast<T>(first++ % 251);
    write<T>(name, shape, numbers);
  }
  template <class T>
  void write(const std::string& name, const Shape& shape, const std::vector<T>& numbers) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::string sizes;
    for (int64_t size : shape) sizes += std::to_string(size) + ", ";
    write_bytes(folder_ / name, npy_of<T>(kDescr<T>, "(" + sizes + ")", numbers));
  }
  std::unique_ptr<Dataset> open(const Shape& shape, const std::string& options = "",
                                int64_t classes = 2, ImageSizes sizes = ImageSizes::kAny) {
    return open_dataset("folder:" + folder_.path() + options, shape, 1, classes,
                        ChannelAxis::kFirst, sizes);
  }
  std::string refusal_of(const Shape& shape, const std::string& options = "") {
    return message_of<InvalidInput>([&] { open(shape, options); });
  }
  ScratchFolder folder_;
};

at::Tensor labels_of(const Dataset& data, int64_t sample) {
  const Shape shape = data.target_shape_of(sample);
  at::Tensor labels = at::empty(shape, at::kLong);
  data.load_target(sample, Box::whole(shape), labels);
  return labels;
}

TEST_F(FileSetTest, ImagesOfDifferentSizes) {
  image("images/a.npy", {4, 5});
  image("images/b.npy", {6, 3}, 100);
  write<uint8_t>("masks/a.npy", {4, 5}, std::vector<uint8_t>(20, 1));
  write<uint8_t>("masks/b.npy", {6, 3}, std::vector<uint8_t>(18, 0));
  const auto data = open({1, 8, 8});
  EXPECT_EQ(data->size(), 2);
  EXPECT_TRUE(data->image_shape().empty() && data->target_shape().empty());
  EXPECT_TRUE(data->per_pixel() && data->has_targets());
  EXPECT_EQ(data->image_shape_of(1), (Shape{1, 6, 3}));
  EXPECT_EQ(data->target_shape_of(0), (Shape{4, 5}));
  EXPECT_EQ(data->name_of(1), "b");
  at::Tensor part = at::empty({1, 2, 2});
  data->load_image(1, {{0, 1}, {4, 6}, {1, 3}}, part);
  EXPECT_TRUE(part.equal(at::tensor({113.f, 114.f, 116.f, 117.f}).view({1, 2, 2})));
  EXPECT_EQ(labels_of(*data, 0).sum().item<int64_t>(), 20);
  EXPECT_EQ(count_labels(*data, 2, 2), (std::vector<int64_t>{18, 20}));
  const Subset second(std::shared_ptr<const Dataset>(open({1, 8, 8})), {1});
  EXPECT_EQ(second.image_shape_of(0), (Shape{1, 6, 3}));
  EXPECT_EQ(count_labels(second, 2, 1), (std::vector<int64_t>{18, 0}));
  EXPECT_NE(message_of<InvalidInput>([&] {
              open({1, 4, 5}, "", 2, ImageSizes::kAsWanted);
            }).find("b.npy: the file's shape is 6x3, images of 1x4x5"),
            std::string::npos);
}

TEST_F(FileSetTest, OfOneSizeHaveIt) {
  image("a.npy", {3, 4, 5});
  image("b.npy", {3, 4, 5});
  const auto data = open({3, 4, 5}, "", 2, ImageSizes::kAsWanted);
  EXPECT_EQ(data->image_shape(), (Shape{3, 4, 5}));
  EXPECT_FALSE(data->has_targets());
  EXPECT_THROW(data->load_target(0, Box(), at::empty({}, at::kLong)), InvalidInput);
}

TEST_F(FileSetTest, AllImagesHaveTheSameChannels) {
  image("a.npy", {3, 4, 5});
  image("b.npy", {2, 4, 5});
  EXPECT_NE(refusal_of({3, 4, 5}).find("b.npy: the file's shape is 2x4x5"), std::string::npos)
      << refusal_of({3, 4, 5});
  EXPECT_NE(refusal_of({}).find("b.npy: an image of 2x4x5, and"), std::string::npos);
}

TEST_F(FileSetTest, ChannelsOfSeveralFiles) {
  image("imagesTr/x_0000.npy", {4, 5});
  image("imagesTr/x_0001.npy", {2, 4, 5}, 100);
  image("imagesTr/x_0002.npy", {4, 5}, 200);
  write<int16_t>("labelsTr/x.npy", {4, 5}, std::vector<int16_t>(20, 1));
  const auto data = open({4, 4, 5});
  EXPECT_EQ(data->image_shape(), (Shape{4, 4, 5}));
  at::Tensor whole = at::empty({4, 4, 5});
  data->load_image(0, Box::whole({4, 4, 5}), whole);
  EXPECT_EQ(whole[0][0][0].item<float>(), 0);
  EXPECT_EQ(whole[1][0][0].item<float>(), 100);
  EXPECT_EQ(whole[2][3][4].item<float>(), 139);
  EXPECT_EQ(whole[3][0][1].item<float>(), 201);
  for (int64_t begin = 0; begin < 4; ++begin)
    for (int64_t end = begin + 1; end <= 4; ++end) {
      at::Tensor part = at::empty({end - begin, 2, 5});
      data->load_image(0, {{begin, end}, {1, 3}, {0, 5}}, part);
      EXPECT_TRUE(part.equal(whole.slice(0, begin, end).slice(1, 1, 3))) << begin << end;
    }
  EXPECT_NE(refusal_of({3, 4, 5}).find("3 files of x have 4 channels, the network takes 3"),
            std::string::npos);
  image("imagesTr/x_0002.npy", {5, 4});
  EXPECT_NE(refusal_of({4, 4, 5}).find("are channels of one image"), std::string::npos);
}

/// One file may be several channels.
TEST_F(FileSetTest, AFileMayComeTwice) {
  image("a.npy", {2, 2}, 5);
  write_bytes(folder_ / "l.csv", "image,image2,label\na.npy,a.npy,1\n");
  const auto data = open_dataset("list:" + (folder_ / "l.csv"), {2, 2, 2}, 1, 2);
  at::Tensor whole = at::empty({2, 2, 2});
  data->load_image(0, Box::whole({2, 2, 2}), whole);
  EXPECT_TRUE(whole[0].equal(whole[1]));
  EXPECT_EQ(whole[1][1][1].item<float>(), 8);
}

TEST_F(FileSetTest, ValuesOfMasksBecomeLabels) {
  image("images/a.npy", {2, 2});
  write<uint8_t>("masks/a.npy", {2, 2}, {0, 255, 255, 7});
  const std::string message = message_of<InvalidInput>([&] { labels_of(*open({1, 2, 2}), 0); });
  EXPECT_NE(message.find("masks/a.npy: label 255 in sample 0 (a) at position (0x1); legal: 0 to 1"),
            std::string::npos)
      << message;
  EXPECT_TRUE(labels_of(*open({1, 2, 2}, ",values=0:0/255:1,ignore=7"), 0)
                  .equal(at::tensor({0, 1, 1, -100}, at::kLong).view({2, 2})));
  EXPECT_TRUE(labels_of(*open({1, 2, 2}, ",values=auto,classes=3"), 0)
                  .equal(at::tensor({0, 2, 2, 1}, at::kLong).view({2, 2})));
  EXPECT_EQ(open({1, 2, 2}, ",values=auto", 0)->num_classes(), 3);
  EXPECT_EQ(open({1, 2, 2}, "", 0)->num_classes(), 256);
  EXPECT_EQ(open({1, 2, 2}, ",values=auto,ignore=7", 0)->num_classes(), 2);
  const auto unlisted = open({1, 2, 2}, ",values=0:0/255:1");
  expect_refusal([&] { labels_of(*unlisted, 0); },
                 "value 7 in sample 0 (a) at position (1x1); values=0:0/255:1 gives labels to 0, "
                 "255, of 2 classes");
  EXPECT_NE(refusal_of({1, 2, 2}, ",values=0-0").find("value:label pairs"), std::string::npos);
}

TEST_F(FileSetTest, MasksThatDoNotFit) {
  image("images/a.npy", {2, 3});
  write<uint8_t>("masks/a.npy", {3, 2}, std::vector<uint8_t>(6, 0));
  EXPECT_NE(refusal_of({1, 2, 3}).find("masks/a.npy: the mask is 3x2, its image"),
            std::string::npos);
  write<uint8_t>("masks/a.npy", {2, 3, 3}, std::vector<uint8_t>(18, 0));
  EXPECT_NE(refusal_of({1, 2, 3}).find("a mask with 3 channels"), std::string::npos);
}

/// Labels are often stored as real numbers; then the user says that they are labels.
TEST_F(FileSetTest, LabelsInRealNumbers) {
  image("images/a.npy", {2, 2});
  write<float>("masks/a.npy", {2, 2}, {0, 1, 1, 0});
  EXPECT_TRUE(open({1, 2, 2})->real_targets());
  const auto labels = open({1, 2, 2}, ",targets=labels");
  EXPECT_FALSE(labels->real_targets());
  EXPECT_EQ(labels_of(*labels, 0).sum().item<int64_t>(), 2);
  write<float>("masks/a.npy", {2, 2}, {0, 1, 0.5, 0});
  expect_refusal([&] { labels_of(*open({1, 2, 2}, ",targets=labels"), 0); }, "are not whole");
  EXPECT_NE(refusal_of({1, 2, 2}, ",ignore=3").find("numbers cannot be ignored"),
            std::string::npos);
}

TEST_F(FileSetTest, AFolderForEachClass) {
  image("train/cat/1.npy", {1, 2, 2});
  image("train/dog/2.npy", {1, 2, 2});
  image("val/dog/3.npy", {1, 2, 2});
  image("test/cat/4.npy", {1, 2, 2});
  const std::shared_ptr<const Dataset> data = open({1, 2, 2}, "", 10);
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data->num_classes(), 2);
  EXPECT_FALSE(data->per_pixel());
  const DatasetSplit split = split_dataset(data, 0.1, 1);
  ASSERT_EQ(split.train->size(), 2);
  ASSERT_EQ(split.validation->size(), 1);
  EXPECT_EQ(split.validation->name_of(0), "3");
  EXPECT_EQ(labels_of(*split.validation, 0).item<int64_t>(), 1);
  EXPECT_EQ(split.train->class_names(), data->class_names());
  EXPECT_EQ(count_labels(*split.train, 2, 2), (std::vector<int64_t>{1, 1}));
  expect_refusal([&] { split_dataset(data, 0.1, 1, Fold{1, 2}); }, "1 sample of its own");
  const auto tests = open({1, 2, 2}, ",split=test");
  ASSERT_EQ(tests->size(), 1);
  EXPECT_EQ(tests->name_of(0), "4");
  EXPECT_THROW(split_dataset(std::shared_ptr<const Dataset>(open({1, 2, 2}, ",split=test")), 0, 1),
               InvalidInput);
}

TEST_F(FileSetTest, TestsMayLackTargetsAndOthersMayNot) {
  image("a.npy", {2, 2});
  const auto listed = [&](const std::string& rows, const std::string& options = "") {
    write_bytes(folder_ / "l.csv", "image,label,split,weight\n" + rows);
    return open_dataset("list:" + (folder_ / "l.csv") + options, {1, 2, 2}, 1, 5);
  };
  const auto data = listed("a.npy,4,,3\na.npy,,test,1\n");
  EXPECT_TRUE(data->has_targets());
  EXPECT_EQ(data->weight_of(0), 3);
  EXPECT_EQ(data->part_of(1), SamplePart::kTest);
  EXPECT_EQ(labels_of(*data, 0).item<int64_t>(), 4);
  expect_refusal([&] { labels_of(*data, 1); }, "has no target");
  EXPECT_FALSE(listed("a.npy,4,,1\na.npy,,test,1\n", ",split=test")->has_targets());
  expect_refusal([&] { listed("a.npy,4,,1\na.npy,,,1\n"); }, "has a label and");
  const auto bad = listed("a.npy,5,,1\n");
  expect_refusal([&] { labels_of(*bad, 0); }, "label 5 in sample 0 (a)");
  expect_refusal([&] { listed("b.npy,4,,1\n"); }, "b.npy");
}

/// nnU-Net's layout: images for tests have no labels.
TEST_F(FileSetTest, TestsWithoutMasksAreLeftOut) {
  image("imagesTr/a_0000.npy", {2, 2});
  image("imagesTr/c_0000.npy", {2, 2});
  image("imagesTs/b_0000.npy", {2, 2});
  write<uint8_t>("labelsTr/a.npy", {2, 2}, {0, 1, 1, 1});
  write<uint8_t>("labelsTr/c.npy", {2, 2}, {0, 0, 1, 1});
  const std::shared_ptr<const Dataset> data = open({1, 2, 2}, "", 0);
  ASSERT_EQ(data->size(), 3);
  EXPECT_TRUE(data->has_targets());
  EXPECT_TRUE(data->has_target(0) && data->has_target(1));
  EXPECT_FALSE(data->has_target(2));
  EXPECT_EQ(data->num_classes(), 2);
  EXPECT_EQ(count_labels(*data, 2, 2), (std::vector<int64_t>{3, 5}));
  expect_refusal(
      [&] {
        data->load_target(2, Box::whole({2, 2}), at::empty({2, 2}, at::kLong));
      },
      "b_0000.npy has no target");
  const auto scored = std::make_shared<Subset>(data, samples_with_targets(*data));
  EXPECT_EQ(scored->samples(), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(scored->has_target(1));
  EXPECT_FALSE(Subset(data, {2}).has_target(0));
}

/// Numbers have the channels of their images, and do not tell whether the images have any.
TEST_F(FileSetTest, ChannelsOfImagesWithNumbers) {
  image("images/a.npy", {3, 4, 4});
  image("masks/a.npy", {3, 4, 4});
  EXPECT_EQ(open({})->image_shape(), (Shape{3, 4, 4}));
  EXPECT_EQ(open({})->target_shape(), (Shape{3, 4, 4}));
  write<uint8_t>("masks/a.npy", {3, 4, 4}, std::vector<uint8_t>(48, 1));
  const auto volume = open({});
  EXPECT_EQ(volume->image_shape(), (Shape{1, 3, 4, 4}));
  at::Tensor part = at::empty({1, 1, 1, 2});
  volume->load_image(0, {{0, 1}, {2, 3}, {0, 1}, {1, 3}}, part);
  EXPECT_EQ(part.sum().item<float>(), 33 + 34);
}

TEST_F(FileSetTest, TypesOfAllFilesCount) {
  image("imagesTr/a_0000.npy", {2, 2});
  image<uint8_t>("imagesTr/a_0001.npy", {2, 2});
  EXPECT_EQ(open({2, 2, 2})->pixel_types(),
            (std::set<PixelType>{PixelType::kUint8, PixelType::kFloat32}));
  image<uint8_t>("imagesTr/a_0000.npy", {2, 2});
  EXPECT_EQ(open({2, 2, 2})->pixel_types(), std::set<PixelType>{PixelType::kUint8});
}

TEST_F(FileSetTest, FilesThatChangeAreRefused) {
  image("images/a.npy", {4, 4});
  for (int i = 0; i < 70; ++i) image(fmt::format("images/b{}.npy", i), {4, 4});
  const auto data = open({1, 4, 4});
  at::Tensor whole = at::empty({1, 4, 4});
  for (int64_t i = 1; i < data->size(); ++i) data->load_image(i, Box::whole({1, 4, 4}), whole);
  image("images/a.npy", {4, 3});  // no longer open: 64 others were read
  expect_refusal(
      [&] {
        data->load_image(0, Box::whole({1, 4, 4}), whole);
      },
      "it has another size than before");
}

TEST(Folds, AreDisjointAndTogetherAll) {
  const std::shared_ptr<const Dataset> data = open_dataset("synthetic:samples=23", {1, 32, 32}, 1);
  std::vector<int64_t> all;
  for (int64_t index = 1; index <= 5; ++index) {
    const DatasetSplit split = split_dataset(data, 0.1, 7, Fold{index, 5});
    EXPECT_EQ(split.train->size() + split.validation->size(), 23);
    EXPECT_TRUE(split.validation->size() == 4 || split.validation->size() == 5);
    all.insert(all.end(), split.validation->samples().begin(), split.validation->samples().end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(23);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_NE(split_dataset(data, 0, 8, Fold{1, 5}).validation->samples(),
            split_dataset(data, 0, 7, Fold{1, 5}).validation->samples());
  EXPECT_FALSE(parse_fold(""));
  EXPECT_EQ(parse_fold("5/5")->index, 5);
  for (const char* text : {"0/5", "6/5", "1/1", "1", "/", "1/", "1/5x", "-1/5"})
    expect_refusal([&] { parse_fold(text); }, "write i/k with k at least 2");
  expect_refusal([&] { split_dataset(data, 0, 7, Fold{1, 24}); }, "leave some empty");
}

}  // namespace
}  // namespace tessera::file_set_test
