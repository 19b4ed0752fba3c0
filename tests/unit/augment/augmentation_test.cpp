// --augment as it is written, and changes with known results.

#include "tessera/augment/augmentation.h"

#include "tessera/augment/changed_numbers.h"
#include "tessera/augment/prepared.h"
#include "tests/unit/augment/example_images.h"
#include "tests/unit/refusal.h"

namespace tessera::augmentation_test {
namespace {

std::shared_ptr<const ExampleImages> one_of(const at::Tensor& pixels) {
  ExampleImages::Image image{pixels, at::zeros({pixels.size(1), pixels.size(2)}, at::kLong)};
  return std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image});
}

std::shared_ptr<const Dataset> changed(std::shared_ptr<const Dataset> images,
                                       const std::string& text) {
  Preparation preparation;
  preparation.augmentation = parse_augmentation(text);
  return prepared(std::move(images), nullptr, preparation).train;
}

TEST(Augmentation, IsReadAsItIsWritten) {
  const Augmentation made =
      parse_augmentation("flip:axes=x+affine:rotate=20,scale=0.3+noise:std=0.5,p=0.25");
  EXPECT_EQ(made.flip->axes, "x");
  EXPECT_EQ(made.affine->rotate, 20);
  EXPECT_EQ(made.affine->shear, 0);
  EXPECT_EQ(made.noise->deviation, 0.5);
  EXPECT_EQ(made.noise->probability, 0.25);
  EXPECT_TRUE(made.changes_positions() && made.changes_numbers());
  EXPECT_FALSE(made.zoom || made.blur);
  EXPECT_FALSE(parse_augmentation("").changes_positions());
}

TEST(Augmentation, RefusesWhatIsNotKnown) {
  expect_refusal([] { parse_augmentation("flipp"); }, "did you mean flip");
  expect_refusal([] { parse_augmentation("flip,rotate90"); }, "'flip,rotate90' is not a known");
  expect_refusal([] { parse_augmentation("affine:rotat=3"); }, "did you mean rotate");
  expect_refusal([] { parse_augmentation("noise:p=2"); }, "p=2 must be a number from 0 to 1");
  expect_refusal([] { parse_augmentation("flip+flip"); }, "flip is given twice");
  expect_refusal([] { parse_augmentation("zoom:low=2,high=1"); }, "low=2 is above high=1");
  expect_refusal([] { parse_augmentation("flip+"); }, "'' is not a known change");
  for (const char* axes : {"w", "xx", "x y", "Z"})
    expect_refusal([&] { parse_augmentation(std::string("flip:axes=") + axes); },
                   "some of the letters z, y and x, each once");
}

TEST(Augmentation, FlipsTheAxesThatImagesHave) {
  const auto images = ExampleImages::of({{1, 4, 6}});
  const at::Tensor pixels = images->image(0).pixels;
  const auto flipped = [&](const std::string& axes) {
    return whole_image(*changed(images, "flip:p=1,axes=" + axes), 0);
  };
  EXPECT_TRUE(flipped("x").equal(pixels.flip({2})));
  EXPECT_TRUE(flipped("yx").equal(pixels.flip({1, 2})));
  EXPECT_TRUE(flipped("xy").equal(pixels.flip({1, 2})));
  EXPECT_TRUE(flipped("all").equal(pixels.flip({1, 2})));
  expect_refusal([&] { flipped("z"); }, "axes=z, and the images have the axes yx");
  const auto volumes = ExampleImages::of({{1, 2, 4, 6}});
  EXPECT_TRUE(whole_image(*changed(volumes, "flip:p=1,axes=xzy"), 0)
                  .equal(volumes->image(0).pixels.flip({1, 2, 3})));
}

/// What is linear in space stays so under interpolation: a map is seen from its values.
TEST(Augmentation, ZoomOfAGradientIsASlowerGradient) {
  const at::Tensor ramp = at::arange(41, at::kDouble).reshape({1, 1, 41}).expand({1, 41, 41});
  const auto data = changed(one_of(ramp.contiguous()), "zoom:low=2,high=2");
  const at::Tensor made = whole_image(*data, 0)[0];
  const at::Tensor expected = (at::arange(41, at::kDouble) - 20) / 2 + 20;
  EXPECT_LT((made - expected).abs().max().item<double>(), 1e-12);
}

TEST(Augmentation, RotationKeepsDistances) {
  const at::Tensor line = at::arange(81, at::kDouble) - 40;
  const auto image =
      at::stack({line.reshape({81, 1}).expand({81, 81}), line.reshape({1, 81}).expand({81, 81})})
          .contiguous();
  const auto data = changed(one_of(image), "affine:rotate=90,scale=0");
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const at::Tensor made = whole_image(*data, {0, epoch}).narrow(1, 30, 21).narrow(2, 30, 21);
    const at::Tensor square = made.pow(2).sum(0);
    const at::Tensor source = at::stack({image[0], image[1]}).narrow(1, 30, 21).narrow(2, 30, 21);
    EXPECT_LT((square - source.pow(2).sum(0)).abs().max().item<double>(), 1e-9);
  }
}

/// Pixels of 3 mm by 1 mm: what is a circle in the world stays one.
TEST(Augmentation, RotationKeepsDistancesInTheWorld) {
  const at::Tensor down = 3 * (at::arange(41, at::kDouble) - 20);
  const at::Tensor right = at::arange(121, at::kDouble) - 60;
  ExampleImages::Image image{at::stack({down.reshape({41, 1}).expand({41, 121}),
                                        right.reshape({1, 121}).expand({41, 121})})
                                 .contiguous(),
                             at::zeros({41, 121}, at::kLong)};
  image.frame.spacing = {3, 1};
  const auto data =
      changed(std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image}),
              "affine:rotate=45,scale=0");
  const auto squares = [](const at::Tensor& planes) {
    return planes.narrow(1, 15, 11).narrow(2, 45, 31).pow(2).sum(0);
  };
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_LT((squares(whole_image(*data, {0, epoch})) - squares(image.pixels))
                  .abs()
                  .max()
                  .item<double>(),
              1e-9);
}

TEST(Augmentation, ElasticDisplacementsAreSmoothAndOfTheirSize) {
  const at::Tensor ramp = at::arange(200, at::kDouble).reshape({1, 1, 200}).expand({1, 200, 200});
  const auto data = changed(one_of(ramp.contiguous()), "elastic:size=3,spacing=20");
  const at::Tensor made = whole_image(*data, 0)[0].narrow(0, 30, 140).narrow(1, 30, 140);
  const at::Tensor moved = made - ramp[0].narrow(0, 30, 140).narrow(1, 30, 140);
  // Splines average their points: less than the deviation of these, but not nothing.
  EXPECT_GT(moved.std().item<double>(), 0.5);
  EXPECT_LT(moved.std().item<double>(), 3);
  const at::Tensor steps = (moved.narrow(1, 1, 139) - moved.narrow(1, 0, 139)).abs();
  EXPECT_LT(steps.max().item<double>(), 1);
}

TEST(Augmentation, BlurIsThatOfASlowReference) {
  const auto images = ExampleImages::of({{1, 9, 8}});
  const auto data = changed(images, "blur:sigma=0.8,p=1");
  const at::Tensor made = whole_image(*data, 0)[0], source = images->image(0).pixels[0];
  // The drawn sigma is seen from the sum of squares; here it is enough that some sigma fits.
  double best = 1;
  for (double sigma = 0.001; sigma <= 0.8; sigma += 0.001) {
    const auto radius = static_cast<int64_t>(std::ceil(3 * sigma));
    double worst = 0;
    for (int64_t row = 0; row < 9 && worst < best; row += 4)
      for (int64_t column = 0; column < 8 && worst < best; column += 3) {
        double sum = 0, total = 0;
        for (int64_t dy = -radius; dy <= radius; ++dy)
          for (int64_t dx = -radius; dx <= radius; ++dx) {
            const double weight = std::exp(-double(dy * dy + dx * dx) / (2 * sigma * sigma));
            const double* pixels = source.data_ptr<double>();
            sum += weight * pixels[std::clamp<int64_t>(row + dy, 0, 8) * 8 +
                                   std::clamp<int64_t>(column + dx, 0, 7)];
            total += weight;
          }
        worst = std::max(worst, std::abs(sum / total - made[row][column].item<double>()));
      }
    best = std::min(best, worst);
  }
  EXPECT_LT(best, 5e-3);
  EXPECT_FALSE(made.equal(source));
}

TEST(Augmentation, NumbersChangeAsTheySay) {
  const auto images = one_of(at::full({1, 50, 50}, 0.5, at::kDouble));
  const auto value = [&](const std::string& text, int64_t epoch) {
    const at::Tensor made = whole_image(*changed(images, text), {0, epoch});
    EXPECT_TRUE(made.eq(made[0][0][0]).all().item<bool>()) << text;
    return made[0][0][0].item<double>();
  };
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    const double bright = value("brightness:range=0.2", epoch);
    EXPECT_NEAR(bright, 0.5, 0.2);
    EXPECT_NE(bright, 0.5);
    const double strong = value("contrast:range=1", epoch) / 0.5;
    EXPECT_GE(strong, 0.5);
    EXPECT_LE(strong, 2);
    EXPECT_EQ(value("contrast:range=1,centre=0.5", epoch), 0.5);
    const double exponent = std::log(value("gamma:range=1", epoch)) / std::log(0.5);
    EXPECT_GE(exponent, 0.5 - 1e-12);
    EXPECT_LE(exponent, 2 + 1e-12);
    EXPECT_EQ(value("brightness:p=0", epoch), 0.5);
  }
  const at::Tensor noisy = whole_image(*changed(images, "noise:std=0.1"), 0);
  EXPECT_NEAR(noisy.mean().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(noisy.std().item<double>(), 0.1, 0.01);
  const at::Tensor holes =
      whole_image(*changed(images, "dropout:boxes=1,size=0.2,fill=-1"), 0).eq(-1);
  EXPECT_GE(holes.sum().item<int64_t>(), 25);   // a quarter at least lies in the patch
  EXPECT_LE(holes.sum().item<int64_t>(), 100);  // 10 x 10
}

/// Only what is trained on is changed.
TEST(Augmentation, ValidationSeesTheImagesAsTheyAre) {
  const auto images = ExampleImages::of({{1, 8, 8}, {1, 8, 8}});
  Preparation preparation;
  preparation.augmentation = parse_augmentation("flip+noise");
  preparation.network = {8, 8};
  const PreparedData data = prepared(images, images, preparation);
  EXPECT_TRUE(whole_image(*data.validation, {1, 4}).equal(images->image(1).pixels));
  EXPECT_FALSE(whole_image(*data.train, {1, 4}).equal(images->image(1).pixels));
}

/// Images that a network cannot take whole are cut, and those that it can are not touched.
TEST(Augmentation, ImagesAreCutWhereTheyMustBe) {
  Preparation preparation;
  preparation.network = {8, 8};
  const auto fitting = ExampleImages::of({{1, 8, 8}});
  EXPECT_EQ(prepared(fitting, nullptr, preparation).train, fitting);
  const auto larger = ExampleImages::of({{1, 8, 20}});
  EXPECT_EQ(prepared(larger, larger, preparation).train->image_shape(), (Shape{1, 8, 8}));
  EXPECT_EQ(prepared(larger, larger, preparation).validation->size(), 3);
  const auto mixed = ExampleImages::of({{1, 8, 20}, {1, 5, 5}});
  EXPECT_EQ(prepared(mixed, nullptr, preparation).train->image_shape(), (Shape{1, 8, 8}));
  const auto smaller = ExampleImages::of({{1, 5, 5}});
  EXPECT_EQ(prepared(smaller, nullptr, preparation).train, smaller);
  // Without a network, as for `tessera data`, all stay as they are.
  const PreparedData uncut = prepared(mixed, smaller, {});
  EXPECT_EQ(uncut.train, mixed);
  EXPECT_EQ(uncut.validation, smaller);
  preparation.crop = {4, 4};
  expect_refusal([&] { prepared(larger, nullptr, preparation); },
                 "4x4 is not what the network takes, 8x8");
}

}  // namespace
}  // namespace tessera::augmentation_test
