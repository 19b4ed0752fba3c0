// Pictures: colours that differ, a stretch that survives bad pixels, panels where they belong.

#include "tessera/data/picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera::picture_test {
namespace {

int distance(const Colour& a, const Colour& b) {
  return std::abs(a.red - b.red) + std::abs(a.green - b.green) + std::abs(a.blue - b.blue);
}

TEST(ClassColour, AreDistinct) {
  for (int64_t a = -1; a < 24; ++a)
    for (int64_t b = a + 1; b < 24; ++b)
      EXPECT_GT(distance(class_colour(a), class_colour(b)), 20) << a << " and " << b;
  EXPECT_EQ(class_colour(0), (Colour{0, 0, 0}));
  EXPECT_EQ(class_colour(-100), class_colour(-1));
}

TEST(PictureOf, StretchesGreyAndKeepsRgb) {
  const at::Tensor ramp = at::arange(100, at::kFloat).view({10, 10});
  const Canvas grey = picture_of(ramp);
  EXPECT_EQ(grey.at(0, 0), (Colour{0, 0, 0}));
  EXPECT_EQ(grey.at(9, 9), (Colour{255, 255, 255}));
  EXPECT_LT(grey.at(0, 5).red, grey.at(0, 6).red);
  at::Tensor rgb = at::zeros({3, 4, 4});
  rgb[1].fill_(1);
  EXPECT_EQ(picture_of(rgb).at(2, 2), (Colour{0, 255, 0}));
  EXPECT_EQ(picture_of(rgb.slice(0, 1, 3)).width(), 4);  // two channels: the first, as grey
}

TEST(PictureOf, SurvivesBadPixelsAndFlatImages) {
  at::Tensor image = at::arange(100, at::kDouble).view({1, 10, 10});
  image[0][3][4] = std::nan("");
  image[0][5][6] = std::numeric_limits<double>::infinity();
  const Canvas picture = picture_of(image);
  EXPECT_EQ(picture.at(4, 3), (Colour{255, 0, 255}));
  EXPECT_EQ(picture.at(6, 5), (Colour{255, 255, 255}));
  EXPECT_EQ(picture.at(0, 0), (Colour{0, 0, 0}));
  EXPECT_EQ(picture_of(at::full({3, 3}, 5.0)).at(1, 1), (Colour{0, 0, 0}));
  EXPECT_EQ(picture_of(at::full({3, 3}, std::nan(""))).at(1, 1), (Colour{255, 0, 255}));
}

TEST(PictureOfClasses, PaintsLabels) {
  const Canvas picture = picture_of_classes(at::tensor({0, 1, 2, -100}, at::kLong).view({2, 2}));
  EXPECT_EQ(picture.at(1, 0), class_colour(1));
  EXPECT_EQ(picture.at(0, 1), class_colour(2));
  EXPECT_EQ(picture.at(1, 1), class_colour(-100));
}

TEST(SideBySide, PanelsFramesAndCaptions) {
  const Canvas one(40, 30, {10, 20, 30}), two(40, 30, {40, 50, 60});
  const Canvas picture =
      side_by_side({{"image", one}, {"truth", two}},
                   {.boxes = {{{0, 15}, {0, 40}}, {{15, 30}, {0, 40}}}, .zoom = 2});
  EXPECT_EQ(picture.width(), 8 + 80 + 8 + 80 + 8);
  EXPECT_EQ(picture.height(), 8 + 60 + 8 + 10 + 8);
  EXPECT_EQ(picture.at(0, 0), (Colour{255, 255, 255}));
  EXPECT_EQ(picture.at(48, 20), (Colour{10, 20, 30}));
  EXPECT_EQ(picture.at(8 + 80 + 8 + 40, 20), (Colour{40, 50, 60}));
  EXPECT_EQ(picture.at(48, 8 + 29), (Colour{0, 0, 0}));        // where two boxes meet
  EXPECT_EQ(picture.at(48, 8 + 28), (Colour{255, 255, 255}));  // with a light line beside
  bool text = false;
  for (int64_t x = 8; x < 88; ++x) text = text || picture.at(x, 78).red == 40;
  EXPECT_TRUE(text);
}

TEST(Canvas, LeavesOutWhatIsOutside) {
  Canvas canvas(5, 5, {1, 1, 1});
  canvas.set(-1, 2, {9, 9, 9});
  canvas.set(5, 2, {9, 9, 9});
  canvas.draw_frame({-3, 20}, {-3, 20}, {9, 9, 9});
  canvas.draw_text(4, 4, "anything #", {2, 2, 2}, 3);
  canvas.draw(Canvas(9, 9, {7, 7, 7}), 3, 3, 2);
  EXPECT_EQ(canvas.at(0, 0), (Colour{1, 1, 1}));
  EXPECT_EQ(canvas.at(4, 4), (Colour{7, 7, 7}));
}

}  // namespace
}  // namespace tessera::picture_test
