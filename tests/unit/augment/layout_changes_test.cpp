// Volumes laid down alike: against a slow reference, and where their voxels lie in the world.

#include "tessera/augment/layout_changes.h"

#include "tessera/data/subset.h"
#include "tests/unit/augment/example_images.h"
#include "tests/unit/refusal.h"

namespace tessera::layout_changes_test {
namespace {

std::shared_ptr<const ExampleImages> one_image(const Shape& shape, const ImageFrame& frame) {
  ExampleImages::Image image = ExampleImages::random(shape, 4);
  image.frame = frame;
  return std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image});
}

/// The pixel of a plane at a position, with the border's beyond it.
double at_border(const at::Tensor& plane, double y, double x) {
  const auto weigh = [&](int64_t row, int64_t column) {
    row = std::clamp<int64_t>(row, 0, plane.size(0) - 1);
    column = std::clamp<int64_t>(column, 0, plane.size(1) - 1);
    return plane[row][column].item<double>();
  };
  const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const double down = y - std::floor(y), right = x - std::floor(x);
  return (1 - down) * ((1 - right) * weigh(top, left) + right * weigh(top, left + 1)) +
         down * ((1 - right) * weigh(top + 1, left) + right * weigh(top + 1, left + 1));
}

TEST(LayoutChanges, RespacedImagesAreThoseOfASlowReference) {
  const auto images = one_image({2, 7, 10}, {.spacing = {2, 0.5}});
  const auto data = respaced(images, {1.5, 0.8});
  ASSERT_EQ(data->image_shape(), (Shape{2, 9, 6}));  // 14 mm by 1.5, 5 mm by 0.8
  EXPECT_EQ(data->target_shape(), (Shape{9, 6}));
  EXPECT_EQ(data->frame_of(0).spacing, (std::vector<double>{1.5, 0.8}));
  const at::Tensor made = whole_image(*data, 0), labels = whole_target(*data, 0);
  for (int64_t row = 0; row < 9; ++row)
    for (int64_t column = 0; column < 6; ++column) {
      const double y = (row + 0.5) * 1.5 / 2 - 0.5, x = (column + 0.5) * 0.8 / 0.5 - 0.5;
      for (int64_t channel = 0; channel < 2; ++channel)
        EXPECT_NEAR(made[channel][row][column].item<double>(),
                    at_border(images->image(0).pixels[channel], y, x), 1e-13);
      const int64_t near_row = std::clamp<int64_t>(std::lround(std::floor(y + 0.5)), 0, 6);
      const int64_t near_column = std::clamp<int64_t>(std::lround(std::floor(x + 0.5)), 0, 9);
      EXPECT_EQ(labels[row][column].item<int64_t>(),
                images->image(0).labels[near_row][near_column].item<int64_t>());
    }
  expect_boxes_equal_whole(*data, 0, 20);
}

TEST(LayoutChanges, RespacingToTheSameSpacingKeepsEveryBit) {
  const auto images = one_image({1, 4, 5, 6}, {.spacing = {2, 1, 0.5}});
  const auto data = respaced(images, {2, 1, 0.5});
  EXPECT_TRUE(whole_image(*data, 0).equal(images->image(0).pixels));
  EXPECT_TRUE(whole_target(*data, 0).equal(images->image(0).labels));
}

/// Where the voxel with these indices (z, y, x) lies.
std::array<double, 3> in_world(const ImageFrame& frame, const std::array<double, 3>& zyx) {
  std::array<double, 3> made{};
  for (int row = 0; row < 3; ++row)
    made[row] = (*frame.affine)[4 * row] * zyx[2] + (*frame.affine)[4 * row + 1] * zyx[1] +
                (*frame.affine)[4 * row + 2] * zyx[0] + (*frame.affine)[4 * row + 3];
  return made;
}

/// The first axis of the file (x) runs to the front, the second (y) to the left, the third down.
const ImageFrame kTurned{.spacing = {3, 2, 1},
                         .affine = std::array<double, 12>{0.1, -2, 0, 10,  //
                                                          1, 0.1, 0, -20,  //
                                                          0, 0, -3, 30}};

TEST(LayoutChanges, OrientedVolumesAreTheSameInTheWorld) {
  const auto images = one_image({1, 3, 4, 5}, kTurned);
  const auto data = oriented(images);
  ASSERT_EQ(data->image_shape(), (Shape{1, 3, 5, 4}));  // x and y have changed places
  const ImageFrame frame = data->frame_of(0);
  EXPECT_EQ(frame.spacing, (std::vector<double>{3, 1, 2}));
  for (int axis = 0; axis < 3; ++axis) EXPECT_GT((*frame.affine)[4 * axis + axis], 0);
  const at::Tensor made = whole_image(*data, 0)[0], labels = whole_target(*data, 0);
  for (int64_t z = 0; z < 3; ++z)
    for (int64_t y = 0; y < 5; ++y)
      for (int64_t x = 0; x < 4; ++x) {
        // z and the source's y (our x) are flipped.
        const int64_t from_z = 2 - z, from_y = 3 - x, from_x = y;
        EXPECT_EQ(made[z][y][x].item<double>(),
                  images->image(0).pixels[0][from_z][from_y][from_x].item<double>());
        EXPECT_EQ(labels[z][y][x].item<int64_t>(),
                  images->image(0).labels[from_z][from_y][from_x].item<int64_t>());
        const auto here = in_world(frame, {double(z), double(y), double(x)});
        const auto there = in_world(kTurned, {double(from_z), double(from_y), double(from_x)});
        for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(here[axis], there[axis], 1e-12);
      }
  expect_boxes_equal_whole(*data, 0, 20);
}

TEST(LayoutChanges, RespacedVolumesStayInTheirPlace) {
  const auto images = one_image({1, 3, 4, 5}, kTurned);
  const auto data = respaced(images, {1.5, 4, 1});
  EXPECT_EQ(data->image_shape(), (Shape{1, 6, 2, 5}));
  // The corner of the first voxel is where it was.
  const auto before = in_world(kTurned, {-0.5, -0.5, -0.5});
  const auto after = in_world(data->frame_of(0), {-0.5, -0.5, -0.5});
  for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(before[axis], after[axis], 1e-12);
}

TEST(LayoutChanges, DifferFromSampleToSample) {
  ExampleImages::Image fine = ExampleImages::random({1, 8, 8}, 1);
  ExampleImages::Image coarse = ExampleImages::random({1, 8, 8}, 2);
  fine.frame.spacing = {1, 1};
  coarse.frame.spacing = {2, 2};
  const auto data = respaced(
      std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{fine, coarse}), {1, 1});
  EXPECT_TRUE(data->image_shape().empty());
  EXPECT_EQ(data->image_shape_of(0), (Shape{1, 8, 8}));
  EXPECT_EQ(data->image_shape_of(1), (Shape{1, 16, 16}));
}

/// Two volumes, the second one without labels, as tests may be.
class HalfLabelled : public ExampleImages {
 public:
  HalfLabelled() : ExampleImages({made(), made()}) {}
  bool has_target(int64_t sample) const override { return sample == 0; }
  Shape target_shape_of(int64_t sample) const override {
    return sample == 0 ? ExampleImages::target_shape_of(0) : Shape();
  }

 private:
  static Image made() {
    Image image = random({1, 3, 4, 5}, 4);
    image.frame = kTurned;
    return image;
  }
};

TEST(LayoutChanges, SamplesWithTargetsHaveTheirSizes) {
  const std::vector<std::shared_ptr<const Dataset>> sets{
      oriented(std::make_shared<HalfLabelled>()),
      respaced(std::make_shared<HalfLabelled>(), {1, 1, 1})};
  for (const std::shared_ptr<const Dataset>& data : sets) {
    EXPECT_FALSE(data->has_target(1));
    EXPECT_EQ(data->target_shape_of(1), Shape());
    const auto labelled = std::make_shared<Subset>(data, samples_with_targets(*data));
    ASSERT_EQ(labelled->size(), 1);
    EXPECT_EQ(labelled->image_shape(), data->image_shape_of(0));
    EXPECT_EQ(labelled->target_shape(), data->target_shape_of(0));
    EXPECT_EQ(labelled->target_shape().size(), 3u);
  }
}

TEST(LayoutChanges, RefuseFilesThatDoNotSayWhereTheyLie) {
  expect_refusal(
      [] {
        respaced(one_image({1, 4, 4}, {}), {1, 1});
      },
      "does not say its own spacing");
  expect_refusal(
      [] {
        respaced(one_image({1, 4, 4}, {.spacing = {1, 1}}), {1, 1, 1});
      },
      "3 numbers for sample 0, which is 1x4x4");
  expect_refusal([] { oriented(one_image({1, 4, 4, 4}, {})); }, "does not say where it lies");
  expect_refusal([] { oriented(one_image({1, 4, 4}, {})); }, "is not a volume");
  expect_refusal(
      [] {
        respaced(one_image({1, 4, 4}, {.spacing = {1, 1}}), {1, 2e-9});
      },
      "give a larger spacing");
  expect_refusal(
      [] {
        respaced(one_image({1, 4, 4}, {.spacing = {1, NAN}}), {1, 1});
      },
      "does not say its own spacing");
  expect_refusal([] { parse_spacing("1x0"); }, "'1x0' is not a size of pixels");
  EXPECT_EQ(parse_spacing("1x1x2.5"), (std::vector<double>{1, 1, 2.5}));
}

}  // namespace
}  // namespace tessera::layout_changes_test
