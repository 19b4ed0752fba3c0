// The way back from volumes that were laid down alike, judged by where voxels lie in the world.

#include "tessera/augment/own_grid.h"

#include "tests/unit/augment/example_images.h"

namespace tessera::own_grid_test {
namespace {

std::shared_ptr<const ExampleImages> image_in(const ImageFrame& frame, const Shape& shape) {
  ExampleImages::Image image = ExampleImages::random(shape, 4);
  image.frame = frame;
  return std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{image});
}

/// Where the voxel (z, y, x) lies.
std::array<double, 3> in_world(const ImageFrame& frame, const std::array<double, 3>& zyx) {
  std::array<double, 3> made{};
  for (int row = 0; row < 3; ++row) {
    const double* const line = frame.affine->data() + 4 * row;
    made[row] = line[0] * zyx[2] + line[1] * zyx[1] + line[2] * zyx[0] + line[3];
  }
  return made;
}

/// x of the file runs down, y to the left, z to the back; not quite at right angles to the world.
const ImageFrame kTurned{.spacing = {2, 3, 0.7},
                         .affine = std::array<double, 12>{0.01, -3, 0.1, 10,   //
                                                          0.02, 0.1, -2, -20,  //
                                                          -0.7, 0.05, 0, 30}};

void expect_same_place(const Preparation& preparation) {
  const Shape shape{1, 3, 4, 5};
  const auto own = image_in(kTurned, shape);
  const auto seen = laid_out(own, {}, preparation);
  const PatchMap map = map_from_own_grid(own_axes(*own, 0, preparation));
  const Box space = without_axis(Box::whole(shape), 0);
  const RowMap rows = map(space);
  for (int64_t z = 0; z < 3; ++z)
    for (int64_t y = 0; y < 4; ++y) {
      Coordinates row;
      rows(Position{z, y, 1}, 4, &row);
      for (int64_t i = 0; i < 4; ++i) {
        const auto there = in_world(seen->frame_of(0), {row[0][i], row[1][i], row[2][i]});
        const auto here = in_world(own->frame_of(0), {double(z), double(y), double(1 + i)});
        for (int axis = 0; axis < 3; ++axis) ASSERT_NEAR(there[axis], here[axis], 1e-12);
      }
    }
}

TEST(OwnGrid, AVoxelIsWhereItWas) {
  expect_same_place({.to_ras = true});
  expect_same_place({.spacing = {1.3, 1, 0.9}});
  expect_same_place({.to_ras = true, .spacing = {1.3, 1.1, 2.9}});
  EXPECT_FALSE(changes_grid({}));
  EXPECT_TRUE(changes_grid({.to_ras = true}));
  EXPECT_TRUE(changes_grid({.spacing = {1, 1}}));
}

/// The image that laid_out() makes, brought back.
at::Tensor there_and_back(const Dataset& own, const Dataset& seen, const Preparation& preparation) {
  const Shape shape = own.image_shape_of(0);
  at::Tensor back = at::full(shape, NAN, at::kDouble);
  interpolate(image_reader(seen, 0), map_from_own_grid(own_axes(own, 0, preparation)),
              Box::whole(shape), {Outside::kNearest}, back);
  return back;
}

TEST(OwnGrid, TurningKeepsEveryBit) {
  const auto own = image_in(kTurned, {2, 3, 4, 5});
  const Preparation preparation{.to_ras = true};
  const auto seen = laid_out(own, {}, preparation);
  ASSERT_NE(seen->image_shape(), own->image_shape());
  EXPECT_TRUE(there_and_back(*own, *seen, preparation).equal(own->image(0).pixels));
}

TEST(OwnGrid, FinerPixelsBringBackTheOldOnes) {
  // Of three new pixels for an old one, the middle one has the same centre.
  const auto own = image_in({.spacing = {3, 1.5}}, {1, 6, 7});
  const Preparation preparation{.spacing = {1, 0.5}};
  const auto seen = laid_out(own, {}, preparation);
  ASSERT_EQ(seen->image_shape(), (Shape{1, 18, 21}));
  EXPECT_TRUE(there_and_back(*own, *seen, preparation).allclose(own->image(0).pixels, 0, 1e-13));
}

TEST(OwnGrid, AnImageThinnerThanANewPixelIsOnePixelThere) {
  const auto own = image_in({.spacing = {0.1, 1, 1}}, {1, 3, 4, 4});
  const Preparation preparation{.spacing = {5, 1, 1}};
  const auto seen = laid_out(own, {}, preparation);
  ASSERT_EQ(seen->image_shape(), (Shape{1, 1, 4, 4}));
  const at::Tensor back = there_and_back(*own, *seen, preparation);
  EXPECT_TRUE(back.equal(whole_image(*seen, 0).expand({1, 3, 4, 4})));
}

}  // namespace
}  // namespace tessera::own_grid_test
