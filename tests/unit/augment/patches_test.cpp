// Patches: where they lie, what they hold beyond the image, and turns that keep every bit.

#include "tessera/augment/patches.h"

#include <set>

#include "tessera/augment/class_positions.h"
#include "tests/unit/augment/example_images.h"
#include "tests/unit/refusal.h"

namespace tessera::patches_test {
namespace {

using Kind = CropCentres::Kind;

PatchOptions patches_of(const Shape& size) {
  PatchOptions options;
  options.size = size;
  options.per_image = 50;
  options.seed = 3;
  return options;
}

/// An image whose pixels are their own row-major index.
std::shared_ptr<const ExampleImages> numbered(const Shape& shape) {
  ExampleImages::Image image = ExampleImages::random(shape, 1);
  image.pixels = at::arange(image.pixels.numel(), at::kDouble).reshape(shape);
  return std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image});
}

TEST(Patches, LieEverywhereInTheImage) {
  const auto images = numbered({1, 5, 7});
  const auto data = random_patches(images, patches_of({4, 4}));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t sample = 0; sample < data->size(); ++sample) {
    const at::Tensor patch = whole_image(*data, sample);
    const auto first = static_cast<int64_t>(patch[0][0][0].item<double>());
    seen.insert({first / 7, first % 7});
    const Box there{{0, 1}, {first / 7, first / 7 + 4}, {first % 7, first % 7 + 4}};
    EXPECT_TRUE(patch.equal(part_of_whole(images->image(0).pixels, there)));
    EXPECT_TRUE(whole_target(*data, sample)
                    .equal(part_of_whole(images->image(0).labels, without_axis(there, 0))));
  }
  EXPECT_EQ(seen.size(), 8u);  // 2 x 4 places
}

TEST(Patches, OfSmallImagesArePadded) {
  const auto images = numbered({1, 3, 8});
  PatchOptions options = patches_of({6, 4});
  options.fill = -2;
  const auto data = random_patches(images, options);
  const at::Tensor patch = whole_image(*data, 0), labels = whole_target(*data, 0);
  for (int64_t row : {0, 4, 5}) {  // 3 rows in the middle of 6
    EXPECT_TRUE(patch[0][row].eq(-2).all().item<bool>()) << row;
    EXPECT_TRUE(labels[row].eq(kIgnoreLabel).all().item<bool>()) << row;
  }
  EXPECT_FALSE(patch.narrow(1, 1, 3).eq(-2).any().item<bool>());
}

TEST(Patches, TurnsKeepEveryBit) {
  const auto images = numbered({2, 6, 6});
  const at::Tensor source = images->image(0).pixels;
  PatchOptions options = patches_of({6, 6});
  options.augmentation = parse_augmentation("flip+rotate90");
  const auto data = random_patches(images, options);
  std::set<std::vector<double>> seen;
  for (int64_t sample = 0; sample < data->size(); ++sample) {
    const at::Tensor patch = whole_image(*data, sample), labels = whole_target(*data, sample);
    bool known = false;
    for (int64_t quarters = 0; quarters < 4 && !known; ++quarters)
      for (bool mirrored : {false, true}) {
        const auto turned = [&](at::Tensor whole) {
          whole = at::rot90(whole, quarters, {-2, -1});
          return mirrored ? whole.flip({-1}) : whole;
        };
        if (!patch.equal(turned(source))) continue;
        known = true;
        EXPECT_TRUE(labels.equal(turned(images->image(0).labels)));
        break;
      }
    EXPECT_TRUE(known) << "sample " << sample;
    const at::Tensor corner = patch[0].flatten().narrow(0, 0, 2).contiguous();
    seen.insert({corner[0].item<double>(), corner[1].item<double>()});
  }
  EXPECT_EQ(seen.size(), 8u);  // all turns and mirror images of a square
}

/// A quarter turn of a patch that is not square takes its other shape from the source, where there
/// is one.
TEST(Patches, TurnsOfUnequalSidesNeedASourceThatIsLargeEnough) {
  for (const auto& [shape, can_turn] :
       {std::pair<Shape, bool>{{1, 8, 8}, true}, std::pair<Shape, bool>{{1, 4, 8}, false}}) {
    const auto images = numbered(shape);
    PatchOptions options = patches_of({4, 8});
    options.augmentation = parse_augmentation("rotate90");
    const auto data = random_patches(images, options);
    int turned = 0;
    for (int64_t sample = 0; sample < data->size(); ++sample) {
      const at::Tensor patch = whole_image(*data, sample)[0];
      EXPECT_FALSE(whole_target(*data, sample).eq(-7).any().item<bool>());
      const double step = std::abs((patch[0][1] - patch[0][0]).item<double>());
      turned += step == static_cast<double>(shape[2]);
    }
    EXPECT_EQ(turned > 0, can_turn) << to_string(shape);
  }
}

std::shared_ptr<const ExampleImages> with_one_object() {
  ExampleImages::Image image = ExampleImages::random({1, 32, 32}, 1);
  image.labels.fill_(0);
  image.labels[3][29] = 2;
  image.labels.narrow(0, 20, 6).narrow(1, 4, 6).fill_(1);
  return std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image});
}

TEST(Patches, LieAroundWhatIsAskedFor) {
  const auto images = with_one_object();
  PatchOptions options = patches_of({5, 5});
  const auto count = [&](const CropCentres& centres, int64_t label) {
    options.centres = centres;
    const auto data = random_patches(images, options);
    int64_t found = 0;
    for (int64_t sample = 0; sample < data->size(); ++sample)
      found += whole_target(*data, sample).eq(label).any().item<bool>();
    return found;
  };
  EXPECT_EQ(count({Kind::kForeground, 1}, 1) + count({Kind::kForeground, 1}, 2), 50);
  EXPECT_GE(count({Kind::kForeground, 1}, 1), 45);  // 36 of 37 pixels
  const int64_t half = count({Kind::kForeground, 0.5}, 1);
  EXPECT_GT(half, 15);
  EXPECT_LT(half, 45);
  // Each class as often as any other, however small it is.
  EXPECT_GT(count({Kind::kClasses, 1}, 2), 8);
  EXPECT_LT(count({Kind::kUniform, 1}, 2), 8);
}

TEST(Patches, OfImagesWithoutForegroundLieAnywhere) {
  ExampleImages::Image image = ExampleImages::random({1, 9, 9}, 1);
  image.labels.fill_(0);
  PatchOptions options = patches_of({5, 5});
  options.centres = {Kind::kForeground, 1};
  const auto data = random_patches(
      std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image}), options);
  EXPECT_TRUE(whole_target(*data, 0).eq(0).all().item<bool>());
}

TEST(Patches, PositionsAreThoseOfTheClass) {
  const auto images = with_one_object();
  const ClassPositions positions = find_classes(*images, 0, RandomKey(1));
  std::set<Shape> seen;
  for (uint64_t draw = 0; draw < 600; ++draw)
    if (const auto at = positions.of_foreground(RandomKey(7).with(draw))) {
      EXPECT_NE(images->image(0).labels[(*at)[0]][(*at)[1]].item<int64_t>(), 0);
      seen.insert(*at);
    }
  EXPECT_GE(seen.size(), 36u);
}

TEST(Patches, OfAGridHoldEachPixelOnce) {
  const auto images = ExampleImages::of({{1, 10, 7}, {1, 4, 4}, {1, 3, 9}});
  const auto data = patch_grid(images, {4, 4}, 0);
  EXPECT_EQ(data->size(), 3 * 2 + 1 + 1 * 3);
  int64_t counted = 0, expected = 0;
  for (int64_t sample = 0; sample < data->size(); ++sample) {
    counted += whole_target(*data, sample).ne(kIgnoreLabel).sum().item<int64_t>();
    expect_boxes_equal_whole(*data, sample, 2);
  }
  for (int64_t sample = 0; sample < images->size(); ++sample)
    expected += images->image(sample).labels.ne(kIgnoreLabel).sum().item<int64_t>();
  EXPECT_EQ(counted, expected);
}

/// The images again, as numbers to be met.
class ImagesAsTargets : public ExampleImages {
 public:
  explicit ImagesAsTargets(const Shape& shape) : ExampleImages({random(shape, 1)}) {}
  bool real_targets() const override { return true; }
  Shape target_shape_of(int64_t sample) const override { return image_shape_of(sample); }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    load_image(sample, box, target);
  }
};

TEST(Patches, OfNumbersToBeMetGoWithTheirImages) {
  const auto images = std::make_shared<ImagesAsTargets>(Shape{2, 11, 13});
  PatchOptions options = patches_of({7, 6});
  for (const char* change : {"flip+rotate90", "affine:rotate=40+elastic:spacing=4,size=1"}) {
    options.augmentation = parse_augmentation(change);
    const auto data = random_patches(images, options);
    ASSERT_EQ(data->target_shape(), (Shape{2, 7, 6}));
    for (int64_t sample = 0; sample < 8; ++sample) {
      const at::Tensor image = whole_image(*data, sample);
      at::Tensor target = at::empty({2, 7, 6}, at::kDouble);
      data->load_target(sample, Box::whole({2, 7, 6}), target);
      EXPECT_TRUE(image.equal(target)) << change;
    }
  }
  // Of a grid they lie inside the image: numbers cannot be ignored.
  const auto grid = patch_grid(images, {7, 6}, NAN);
  EXPECT_EQ(grid->size(), 2 * 3);
  for (int64_t sample = 0; sample < grid->size(); ++sample)
    EXPECT_FALSE(whole_image(*grid, sample).isnan().any().item<bool>());
}

/// A class for each image, and no labels of pixels.
class OneLabelEach : public ExampleImages {
 public:
  OneLabelEach() : ExampleImages({random({1, 9, 12}, 1), random({1, 4, 5}, 2)}) {}
  bool per_pixel() const override { return false; }
  Shape target_shape_of(int64_t) const override { return {}; }
  void load_target(Sample sample, const Box&, at::Tensor target) const override {
    target.fill_(sample.index + 1);
  }
};

TEST(Patches, OfImagesWithOneLabelKeepIt) {
  const auto images = std::make_shared<OneLabelEach>();
  PatchOptions options = patches_of({6, 6});
  options.augmentation = parse_augmentation("flip+affine");
  const auto data = random_patches(images, options);
  EXPECT_TRUE(data->target_shape().empty());
  EXPECT_EQ(whole_target(*data, 49).item<int64_t>(), 1);
  EXPECT_EQ(whole_target(*data, 50).item<int64_t>(), 2);
  const auto grid = patch_grid(images, {6, 6}, 0);
  ASSERT_EQ(grid->size(), 2);  // the patch in the middle of each
  EXPECT_EQ(whole_target(*grid, 1).item<int64_t>(), 2);
  const Box middle{{0, 1}, {1, 7}, {3, 9}};
  EXPECT_TRUE(whole_image(*grid, 0).equal(part_of_whole(images->image(0).pixels, middle)));
  options.centres = {Kind::kForeground, 1};
  expect_refusal([&] { random_patches(images, options); }, "labels per pixel");
}

TEST(Patches, RefuseWhatDoesNotFit) {
  const auto images = ExampleImages::of({{1, 10, 7}, {2, 9, 9}});
  expect_refusal(
      [&] {
        random_patches(images, patches_of({4, 4}));
      },
      "sample 1 has 2 channels, the first one has 1");
  expect_refusal([&] { random_patches(images, patches_of({4, 4, 4})); }, "4x4x4 has 3 sizes");
  expect_refusal([] { parse_crop_centres("forground"); }, "did you mean foreground");
  expect_refusal([] { parse_crop_centres("foreground:share=2"); }, "share=2 must be a number");
  expect_refusal([] { parse_crop_centres("uniform:share=0.5"); }, "has no option 'share'");
}

}  // namespace
}  // namespace tessera::patches_test
