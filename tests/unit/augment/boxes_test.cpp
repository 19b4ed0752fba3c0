// The property that matters: whoever asks for a box of a patch gets the bits of the whole patch,
// for each change alone and for many together, in two and three dimensions.

#include "tessera/augment/prepared.h"
#include "tests/unit/augment/example_images.h"

namespace tessera::boxes_test {
namespace {

const std::vector<std::string> kChanges{"flip",
                                        "rotate90",
                                        "rotate90:axes=all",
                                        "affine:rotate=30,scale=0.3,shear=0.2,translate=0.1",
                                        "zoom:low=0.5,high=2",
                                        "elastic:size=2,spacing=4",
                                        "blur:sigma=1.5,p=1",
                                        "gamma",
                                        "contrast:centre=0.5",
                                        "brightness",
                                        "noise",
                                        "dropout:boxes=3,size=0.4"};

std::shared_ptr<const Dataset> augmented(std::shared_ptr<const Dataset> images, const Shape& crop,
                                         const std::string& changes) {
  Preparation preparation;
  preparation.crop = crop;
  preparation.patches_per_image = 2;
  preparation.augmentation = parse_augmentation(changes);
  preparation.seed = 5;
  return prepared(std::move(images), nullptr, preparation).train;
}

void expect_exact(const Dataset& data, int num_boxes) {
  for (int64_t sample = 0; sample < data.size(); ++sample)
    for (int64_t epoch : {0, 3}) expect_boxes_equal_whole(data, {sample, epoch}, num_boxes);
}

TEST(AugmentedBoxes, EqualTheWholePatchInTwoDimensions) {
  const auto images = ExampleImages::of({{2, 20, 23}, {2, 9, 31}});
  for (const std::string& change : kChanges) {
    SCOPED_TRACE(change);
    expect_exact(*augmented(images, {12, 14}, change), 6);
  }
}

TEST(AugmentedBoxes, EqualTheWholePatchInThreeDimensions) {
  const auto images = ExampleImages::of({{1, 9, 12, 11}, {1, 14, 7, 9}});
  for (const std::string& change : kChanges) {
    SCOPED_TRACE(change);
    expect_exact(*augmented(images, {8, 9, 7}, change), 4);
  }
}

TEST(AugmentedBoxes, EqualTheWholePatchWhateverIsCombined) {
  const auto flat = ExampleImages::of({{2, 20, 23}, {2, 9, 31}});
  const auto deep = ExampleImages::of({{1, 9, 12, 11}});
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::string changes;
    for (size_t i = 0; i < kChanges.size(); ++i)
      if (kChanges[i] != "rotate90" && RandomKey(seed).uniform(i) < 0.5)
        changes += (changes.empty() ? "" : "+") + kChanges[i];
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + changes);
    expect_exact(*augmented(flat, {12, 14}, changes), 3);
    expect_exact(*augmented(deep, {8, 9, 7}, changes), 3);
  }
}

TEST(AugmentedBoxes, ChangeTheImageAndDifferFromEpochToEpoch) {
  const auto images = ExampleImages::of({{1, 16, 16}});
  const at::Tensor source = images->image(0).pixels;
  for (const std::string& change : kChanges) {
    SCOPED_TRACE(change);
    const auto data = augmented(images, {16, 16}, change);
    int changed = 0, differ = 0;
    for (int64_t epoch = 0; epoch < 8; ++epoch) {
      const at::Tensor image = whole_image(*data, {0, epoch});
      changed += !image.equal(source);
      differ += !image.equal(whole_image(*data, {0, epoch + 1}));
      EXPECT_TRUE(image.equal(whole_image(*data, {0, epoch})));
    }
    EXPECT_GE(changed, 3);
    EXPECT_GE(differ, 3);
  }
}

/// Another seed is another draw, and so is another patch of the same image.
TEST(AugmentedBoxes, SeedAndSampleCount) {
  const auto images = ExampleImages::of({{1, 40, 40}});
  Preparation preparation;
  preparation.crop = {8, 8};
  preparation.patches_per_image = 2;
  preparation.seed = 1;
  const auto one = prepared(images, nullptr, preparation).train;
  preparation.seed = 2;
  const auto other = prepared(images, nullptr, preparation).train;
  EXPECT_EQ(one->size(), 2);
  EXPECT_FALSE(whole_image(*one, 0).equal(whole_image(*one, 1)));
  EXPECT_FALSE(whole_image(*one, 0).equal(whole_image(*other, 0)));
}

}  // namespace
}  // namespace tessera::boxes_test
