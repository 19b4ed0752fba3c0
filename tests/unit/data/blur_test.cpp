// A box of a blurred picture is the same box of the whole.

#include "tessera/data/blur.h"

#include <gtest/gtest.h>

#include "tessera/base/random.h"

namespace tessera::blur_test {
namespace {

std::vector<double> noise(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(RandomKey(3).uniform(static_cast<uint64_t>(i)));
  return values;
}

TEST(Blur, HasTheWeightsOfABinomial) {
  const Shape line{9};
  std::vector<double> values(9, 0.0);
  values[4] = 16;
  EXPECT_EQ(blur(values, Box::whole(line), Box::whole(line), line, 2),
            (std::vector<double>{0, 0, 1, 4, 6, 4, 1, 0, 0}));
  EXPECT_EQ(blur(values, Box::whole(line), Box::whole(line), line, 0), values);
}

TEST(Blur, GoesOnWithTheLastPixelBeyondTheImage) {
  const Shape line{3};
  EXPECT_EQ(blur({4, 0, 0}, Box::whole(line), Box::whole(line), line, 1),
            (std::vector<double>{3, 1, 0}));
  EXPECT_EQ(blur({4, 4, 4}, Box::whole(line), Box::whole(line), line, 5),
            (std::vector<double>{4, 4, 4}));
}

TEST(Blur, OfABoxIsThatOfTheWhole) {
  const Shape image{7, 9, 8};
  const Box all = Box::whole(image);
  const std::vector<double> values = noise(all.volume());
  const std::vector<double> whole = blur(values, all, all, image, 2);
  for (const Box& box : {Box{{0, 3}, {0, 9}, {2, 5}}, Box{{3, 4}, {5, 9}, {0, 8}}}) {
    const Box around = grown_within(box, image, 2);
    const auto each = [&](const Box& part, auto visit) {
      for (int64_t z = part[0].begin; z < part[0].end; ++z)
        for (int64_t y = part[1].begin; y < part[1].end; ++y)
          for (int64_t x = part[2].begin; x < part[2].end; ++x) visit((z * 9 + y) * 8 + x);
    };
    std::vector<double> near, expected;
    each(around, [&](int64_t i) { near.push_back(values[i]); });
    each(box, [&](int64_t i) { expected.push_back(whole[i]); });
    EXPECT_EQ(blur(near, around, box, image, 2), expected) << to_string(box);
  }
}

}  // namespace
}  // namespace tessera::blur_test
