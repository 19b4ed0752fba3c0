// Synthetic data: any box has the bits of the same region of the whole, in every dimension, type
// and stride; samples and seeds differ; labels mean what the header says.

#include "tessera/data/synthetic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tessera/base/error.h"
#include "tessera/data/open.h"
#include "tessera/data/scene.h"
#include "tests/unit/data/npy_bytes.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::synthetic_test {
namespace {

Box random_part(Random& random, const Shape& shape) {
  Box box;
  for (int64_t size : shape) {
    const int64_t begin = random.between(0, size - 1);
    box.push_back({begin, random.between(begin + 1, size)});
  }
  return box;
}

at::Tensor part_of(at::Tensor whole, const Box& box) {
  for (int axis = 0; axis < box.num_axes(); ++axis)
    whole = whole.slice(axis, box[axis].begin, box[axis].end);
  return whole;
}

at::Tensor whole_image(const Dataset& data, int64_t sample, at::ScalarType type) {
  at::Tensor image = at::empty(data.image_shape(), type);
  data.load_image(sample, Box::whole(data.image_shape()), image);
  return image;
}

at::Tensor whole_target(const Dataset& data, int64_t sample) {
  at::Tensor labels = at::empty(data.target_shape(), at::kLong);
  data.load_target(sample, Box::whole(data.target_shape()), labels);
  return labels;
}

/// A target inside a larger buffer, as a piece with margins is.
at::Tensor with_margins(const Shape& shape, at::ScalarType type) {
  Shape larger = shape;
  for (int64_t& size : larger) size += 3;
  at::Tensor view = at::full(larger, -7, type);
  for (size_t axis = 0; axis < shape.size(); ++axis) view = view.slice(axis, 1, 1 + shape[axis]);
  return view;
}

const std::vector<Shape> kShapes{{1, 3000},   {2, 1025},        {1, 150, 333},
                                 {3, 97, 64}, {1, 40, 51, 290}, {2, 33, 32, 35}};

TEST(Synthetic, AnyBoxHasTheBitsOfTheWhole) {
  for (size_t which = 0; which < kShapes.size(); ++which) {
    const at::ScalarType type = which % 2 == 0 ? at::kFloat : at::kDouble;
    const auto data = open_dataset("synthetic:samples=3,classes=4", kShapes[which], 11);
    const at::Tensor image = whole_image(*data, 2, type), target = whole_target(*data, 2);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Random random(seed);
      const Box box = random_part(random, kShapes[which]);
      const Box region = random_part(random, data->target_shape());
      SCOPED_TRACE(fmt::format("shape {} seed {} boxes {} {}", to_string(kShapes[which]), seed,
                               to_string(box), to_string(region)));
      at::Tensor part = with_margins(box.shape(), type);
      data->load_image(2, box, part);
      ASSERT_TRUE(part.equal(part_of(image, box)));
      at::Tensor labels = with_margins(region.shape(), at::kLong);
      data->load_target(2, region, labels);
      ASSERT_TRUE(labels.equal(part_of(target, region)));
    }
  }
}

TEST(Synthetic, SinglePixelsAndEmptyBoxes) {
  const auto data = open_dataset("synthetic:", {1, 64, 64}, 5);
  const at::Tensor image = whole_image(*data, 0, at::kDouble);
  for (int64_t i = 0; i < 64; i += 7) {
    at::Tensor pixel = at::empty({1, 1, 1}, at::kDouble);
    data->load_image(0, {{0, 1}, {i, i + 1}, {63 - i, 64 - i}}, pixel);
    EXPECT_EQ(pixel.item<double>(), image[0][i][63 - i].item<double>());
  }
  data->load_image(0, {{0, 1}, {3, 3}, {0, 64}}, at::empty({1, 0, 64}));
  data->load_target(0, {{3, 3}, {0, 64}}, at::empty({0, 64}, at::kLong));
}

TEST(Synthetic, WritesNothingOutsideItsView) {
  const auto data = open_dataset("synthetic:", {1, 32, 48}, 5);
  at::Tensor buffer = at::full({1, 20, 20}, -7.0);
  data->load_image(0, {{0, 1}, {4, 12}, {30, 40}}, buffer.slice(1, 5, 13).slice(2, 2, 12));
  EXPECT_EQ(buffer.eq(-7.0).sum().item<int64_t>(), 400 - 80);
}

TEST(Synthetic, OtherTypesTakeTheNearestValue) {
  const auto data = open_dataset("synthetic:", {1, 32, 32}, 5);
  EXPECT_TRUE(
      whole_image(*data, 0, at::kHalf).equal(whole_image(*data, 0, at::kFloat).to(at::kHalf)));
  EXPECT_TRUE(
      whole_image(*data, 0, at::kDouble).to(at::kFloat).equal(whole_image(*data, 0, at::kFloat)));
}

TEST(Synthetic, SamplesAndSeedsDifferAndRepeat) {
  const Shape shape{1, 64, 64};
  const auto data = open_dataset("synthetic:samples=4", shape, 5);
  const auto again = open_dataset("synthetic:samples=64", shape, 5);
  const auto other = open_dataset("synthetic:samples=4", shape, 6);
  EXPECT_TRUE(whole_image(*data, 1, at::kFloat).equal(whole_image(*again, 1, at::kFloat)));
  EXPECT_FALSE(whole_image(*data, 1, at::kFloat).equal(whole_image(*data, 2, at::kFloat)));
  EXPECT_FALSE(whole_image(*data, 1, at::kFloat).equal(whole_image(*other, 1, at::kFloat)));
  EXPECT_FALSE(whole_target(*data, 1).equal(whole_target(*data, 2)));
}

TEST(Synthetic, DomainsAreTheSameScenesInAnotherLight) {
  for (const Shape& shape : {Shape{1, 128, 96}, Shape{2, 33, 32, 35}}) {
    const auto plain = open_dataset("synthetic:samples=2", shape, 3);
    for (int domain = 1; domain <= 4; ++domain) {
      const auto other =
          open_dataset(fmt::format("synthetic:samples=2,domain={}", domain), shape, 3);
      EXPECT_TRUE(whole_target(*other, 1).equal(whole_target(*plain, 1)));
      const at::Tensor image = whole_image(*other, 1, at::kDouble);
      EXPECT_GT((image - whole_image(*plain, 1, at::kDouble)).mean().abs().item<double>(), 0.2);
      Random random(domain);
      const Box box = random_part(random, shape);
      at::Tensor part = at::empty(box.shape(), at::kDouble);
      other->load_image(1, box, part);
      EXPECT_TRUE(part.equal(part_of(image, box)));
    }
  }
}

/// Neighbouring pixels of a blurred domain are nearer to each other, in units of its contrast.
TEST(Synthetic, DomainsDifferInBlur) {
  for (const Shape& shape : {Shape{1, 128, 96}, Shape{1, 48, 48, 48}}) {
    std::vector<double> roughness;
    for (int domain = 0; domain <= 8; ++domain) {
      const auto data = open_dataset(
          fmt::format("synthetic:samples=1,noise=0,texture=0,domain={}", domain), shape, 3);
      const at::Tensor image = whole_image(*data, 0, at::kDouble);
      const int64_t last = image.dim() - 1;
      roughness.push_back((image.diff(1, last).abs().mean() / image.std()).item<double>());
    }
    const auto [least, most] = std::minmax_element(roughness.begin(), roughness.end());
    EXPECT_LT(*least, 0.9 * *most);
  }
}

TEST(Synthetic, ClassesAreAllThereAndNoMore) {
  for (const Shape& shape : kShapes)
    for (int64_t classes = 2; classes <= 4; ++classes) {
      const auto data =
          open_dataset(fmt::format("synthetic:samples=16,classes={}", classes), shape, 3);
      EXPECT_EQ(data->num_classes(), classes);
      EXPECT_TRUE(data->per_pixel());
      std::set<int64_t> seen;
      for (int64_t sample = 0; sample < 16; ++sample) {
        const at::Tensor labels = whole_target(*data, sample).contiguous();
        seen.insert(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel());
      }
      std::set<int64_t> expected;
      for (int64_t label = 0; label < classes; ++label) expected.insert(label);
      EXPECT_EQ(seen, expected) << to_string(shape) << " classes " << classes;
    }
}

// What makes context necessary: without noise, texture and light, the inside of a ring has exactly
// the intensity of the background, and a wall that of an arc.
TEST(Synthetic, IntensityAloneDoesNotTellTheClass) {
  const auto data = open_dataset("synthetic:samples=1,noise=0,texture=0", {1, 256, 256}, 3);
  const at::Tensor image = whole_image(*data, 0, at::kDouble)[0], labels = whole_target(*data, 0);
  const auto bright = image > 0.5;
  EXPECT_GT((bright & labels.eq(0)).sum().item<int64_t>(), 50);          // arcs
  EXPECT_GT((bright & labels.eq(1)).sum().item<int64_t>(), 500);         // blobs
  EXPECT_GT((bright & labels.eq(2)).sum().item<int64_t>(), 500);         // walls
  EXPECT_GT((image.lt(0.5) & labels.eq(2)).sum().item<int64_t>(), 500);  // what they enclose
  // And objects are a part of the image that is neither negligible nor all.
  EXPECT_GT(labels.ne(0).to(at::kDouble).mean().item<double>(), 0.05);
  EXPECT_LT(labels.ne(0).to(at::kDouble).mean().item<double>(), 0.5);
}

TEST(Synthetic, NoiseHasTheDeviationAskedFor) {
  const auto clean = open_dataset("synthetic:samples=1,noise=0", {2, 200, 200}, 3);
  const auto noisy = open_dataset("synthetic:samples=1,noise=0.5", {2, 200, 200}, 3);
  const at::Tensor noise =
      whole_image(*noisy, 0, at::kDouble) - whole_image(*clean, 0, at::kDouble);
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(noise.std().item<double>(), 0.5, 0.01);
  EXPECT_NEAR((noise[0] * noise[1]).mean().item<double>(), 0, 0.01);
}

TEST(Synthetic, ClassificationHasEachClassOften) {
  const auto data =
      open_dataset("synthetic:kind=classification,samples=200,classes=3", {1, 96, 128}, 9);
  EXPECT_FALSE(data->per_pixel());
  EXPECT_TRUE(data->target_shape().empty());
  std::array<int, 3> frequency{};
  for (int64_t sample = 0; sample < data->size(); ++sample)
    ++frequency.at(static_cast<size_t>(whole_target(*data, sample).item<int64_t>()));
  for (int count : frequency) EXPECT_GT(count, 30);
}

// Blobs are full and rings are hollow: where blobs dominate, more of the image is bright.
TEST(Synthetic, ClassificationLabelsFollowWhatIsDrawn) {
  const auto data = open_dataset(
      "synthetic:kind=classification,samples=60,classes=2,noise=0,texture=0", {1, 256, 256}, 9);
  std::array<double, 2> bright{}, samples{};
  for (int64_t sample = 0; sample < data->size(); ++sample) {
    const auto label = static_cast<size_t>(whole_target(*data, sample).item<int64_t>());
    bright.at(label) += (whole_image(*data, sample, at::kFloat) > 0.4).sum().item<double>();
    ++samples.at(label);
  }
  EXPECT_GT(bright[0] / samples[0], 1.1 * bright[1] / samples[1]);
}

TEST(Scene, CountsWhatItDraws) {
  for (int axes = 1; axes <= 3; ++axes) {
    const Shape spatial(axes, 70);
    SceneOptions options;
    options.scale = 16;
    const Scene scene(RandomKey(axes), spatial, options);
    std::array<int64_t, kNumObjectKinds> counts{};
    for_each_position(Box(std::vector<Range>(axes, {0, 5})), [&](const Shape& at) {
      Position cell{};
      std::copy(at.begin(), at.end(), cell.begin());
      const auto object = scene.object_in(cell);
      bool inside = object.has_value();
      for (int axis = 0; inside && axis < axes; ++axis) inside = object->centre[axis] < 70;
      if (inside) ++counts[static_cast<int>(object->kind)];
    });
    EXPECT_EQ(scene.count_objects(), counts);
  }
}

TEST(Scene, ObjectsReachAtMostIntoTheNextCell) {
  const Scene scene(RandomKey(4), {1000, 1000}, {});
  for (int64_t y = -1; y < 30; ++y)
    for (int64_t x = -1; x < 30; ++x) {
      const auto object = scene.object_in({y, x});
      if (!object) continue;
      const std::array<int64_t, 2> cell{y, x};
      for (int axis = 0; axis < 2; ++axis) {
        const double reach = 1.1 / object->inverse_radius[axis];
        EXPECT_GT(object->centre[axis] - reach, static_cast<double>(cell[axis] - 1) * 32);
        EXPECT_LT(object->centre[axis] + reach, static_cast<double>(cell[axis] + 2) * 32);
      }
    }
}

TEST(Synthetic, RefusesWhatItCannotDraw) {
  const auto open = [](const std::string& spec, const Shape& shape) {
    return message_of<InvalidInput>([&] { open_dataset(spec, shape, 1); });
  };
  EXPECT_NE(open("synthetic:clases=3", {1, 64, 64})
                .find("has no option 'clases' (did you mean classes?); legal: kind"),
            std::string::npos);
  EXPECT_NE(open("synthetic:classes=5", {1, 64, 64}).find("from 2 to 4"), std::string::npos);
  EXPECT_NE(open("synthetic:noise=nan", {1, 64, 64}).find("noise=nan"), std::string::npos);
  EXPECT_NE(open("synthetic:kind=x", {1, 64, 64}).find("segmentation, classification"),
            std::string::npos);
  EXPECT_NE(open("synthetic:samples=2,samples=3", {1, 64}).find("twice"), std::string::npos);
  EXPECT_NE(open("synthetic:samples", {1, 64}).find("'samples' is not an option"),
            std::string::npos);
  EXPECT_NE(open("synthetic:samples=2,", {1, 64}).find("'' is not an option"), std::string::npos);
  EXPECT_NE(open("synthetic:samples=99999999999999999999", {1, 64}).find("from 1 to 1099511627776"),
            std::string::npos);
  EXPECT_NE(open("synthetic:scale=10", {1, 64, 64}).find("multiple of 4"), std::string::npos);
  EXPECT_NE(open("synthetic:scale=64", {1, 64, 32}).find("smaller than a cell"), std::string::npos);
  EXPECT_NE(open("synthetic:", {1, 64, 4}).find("smaller than a cell"), std::string::npos);
  EXPECT_NE(open("synthetic:", {64}).find("1 to 3 spatial"), std::string::npos);
  EXPECT_NE(open("synthetic:", {1, 9, 9, 9, 9}).find("1 to 3 spatial"), std::string::npos);
}

}  // namespace
}  // namespace tessera::synthetic_test
