// Numbers to one range: known values, the statistics behind them, and what a run keeps of them.

#include "tessera/augment/intensities.h"

#include <limits>

#include "tessera/augment/image_statistics.h"
#include "tests/unit/augment/example_images.h"
#include "tests/unit/refusal.h"

namespace tessera::intensities_test {
namespace {

std::shared_ptr<const ExampleImages> examples() {
  return ExampleImages::of({{2, 21, 17}, {2, 8, 30}});
}

std::shared_ptr<const Dataset> normalised_by(const std::string& text,
                                             std::shared_ptr<const ExampleImages> images) {
  return normalised(images, fitted(parse_normalisation(text), *images));
}

TEST(Intensities, ZScoreOfEachImage) {
  const auto images = examples();
  const auto data = normalised_by("z-score", images);
  for (int64_t sample = 0; sample < 2; ++sample) {
    const at::Tensor made = whole_image(*data, sample).flatten(1);
    EXPECT_LT(made.mean(1).abs().max().item<double>(), 1e-12);
    EXPECT_LT((made.var(1, /*unbiased=*/false) - 1).abs().max().item<double>(), 1e-12);
    expect_boxes_equal_whole(*data, sample, 8);
  }
}

TEST(Intensities, ZScoreOverTheTrainingSet) {
  const auto images = examples();
  const Intensities found = fitted(parse_normalisation("z-score:over=set"), *images);
  const at::Tensor all =
      at::cat({images->image(0).pixels.flatten(1), images->image(1).pixels.flatten(1)}, 1);
  for (int64_t channel = 0; channel < 2; ++channel) {
    EXPECT_NEAR(found.means[channel], all[channel].mean().item<double>(), 1e-13);
    EXPECT_NEAR(found.deviations[channel], std::sqrt(all[channel].var(false).item<double>()),
                1e-13);
  }
  // Another set is brought to the range of the training set.
  const auto other = ExampleImages::of({{2, 5, 5}});
  const at::Tensor made = whole_image(*normalised(other, found), 0);
  const at::Tensor expected = (other->image(0).pixels[1] - found.means[1]) / found.deviations[1];
  EXPECT_LT((made[1] - expected).abs().max().item<double>(), 1e-14);
}

/// Large enough for several strips, which hold all channels.
TEST(Intensities, StatisticsAreThoseOfEachChannel) {
  const auto images = ExampleImages::of({{3, 700, 800}, {3, 5, 6}});
  const at::Tensor pixels = images->image(0).pixels;
  const std::vector<ImageMoments> moments = image_moments(*images, 0);
  std::vector<std::pair<double, double>> ranges;
  for (int64_t channel = 0; channel < 3; ++channel) {
    const at::Tensor own = pixels[channel];
    EXPECT_EQ(moments[channel].count, 700 * 800);
    EXPECT_NEAR(moments[channel].mean, own.mean().item<double>(), 1e-12);
    EXPECT_NEAR(moments[channel].deviation(), std::sqrt(own.var(false).item<double>()), 1e-12);
    EXPECT_EQ(moments[channel].low, own.min().item<double>());
    EXPECT_EQ(moments[channel].high, own.max().item<double>());
    ranges.emplace_back(channel, channel + 1);
  }
  const auto counts = histograms(*images, 0, ranges, 2);
  for (int64_t channel = 0; channel < 3; ++channel) {
    const at::Tensor own = pixels[channel];
    const auto between = [&](double low, double high) {
      return own.ge(low).logical_and(own.lt(high)).sum().item<int64_t>();
    };
    const auto low = static_cast<double>(channel);
    EXPECT_EQ(counts[channel],
              (std::vector<int64_t>{between(low, low + 0.5), between(low + 0.5, low + 1)}));
  }
  ImageMoments first = moments[1];
  first.add(image_moments(*images, 1)[1]);
  EXPECT_EQ(all_moments(*images)[1].mean, first.mean);
}

TEST(Intensities, WindowsAndPercentilesCutOff) {
  const auto images = examples();
  const at::Tensor pixels = images->image(0).pixels;
  const at::Tensor window = whole_image(*normalised_by("window:low=-1,high=0.5", images), 0);
  EXPECT_LT((window - ((pixels + 1) / 1.5).clamp(0, 1)).abs().max().item<double>(), 1e-14);
  const auto found = image_percentiles(*images, 0, 10, 90);
  const auto ranked = normalised_by("percentiles:low=10,high=90", images);
  for (int64_t channel = 0; channel < 2; ++channel) {
    const at::Tensor sorted = std::get<0>(pixels[channel].flatten().sort());
    const int64_t last = sorted.numel() - 1;
    const double step = (sorted[last] - sorted[0]).item<double>() / 65536;
    const auto& [low, high] = found[channel];
    EXPECT_NEAR(low, sorted[last / 10].item<double>(), step);
    EXPECT_NEAR(high, sorted[last * 9 / 10].item<double>(), step);
    const at::Tensor expected = ((pixels[channel] - low) / (high - low)).clamp(0, 1);
    const at::Tensor made = whole_image(*ranked, 0)[channel];
    EXPECT_LT((made - expected).abs().max().item<double>(), 1e-14);
  }
  expect_boxes_equal_whole(*ranked, 0, 8);
}

TEST(Intensities, GivenNumbersAreThoseOfTheChannels) {
  const auto images = examples();
  const at::Tensor made = whole_image(*normalised_by("given:mean=1/2,deviation=0.5/4", images), 1);
  EXPECT_TRUE(made[0].equal((images->image(1).pixels[0] - 1) / 0.5));
  EXPECT_TRUE(made[1].equal((images->image(1).pixels[1] - 2) / 4));
  expect_refusal([&] { normalised_by("given:mean=1,deviation=1", images); },
                 "1 mean for images of 2 channels");
}

class Typed : public ExampleImages {
 public:
  explicit Typed(std::set<PixelType> types)
      : ExampleImages({random({1, 4, 4}, 1)}), types_(std::move(types)) {}
  std::set<PixelType> pixel_types() const override { return types_; }

 private:
  std::set<PixelType> types_;
};

TEST(Intensities, ScaleGoesByTheTypeOfTheFiles) {
  const auto divisor = [](PixelType type) {
    return fitted(parse_normalisation("scale"), Typed({type})).deviations.at(0);
  };
  EXPECT_EQ(divisor(PixelType::kUint8), 255);
  EXPECT_EQ(divisor(PixelType::kInt16), 32767);
  EXPECT_EQ(divisor(PixelType::kUint16), 65535);
  EXPECT_EQ(divisor(PixelType::kFloat32), 1);
  EXPECT_EQ(fitted(parse_normalisation("scale"), Typed({})).deviations.at(0), 1);
  expect_refusal(
      [] {
        fitted(parse_normalisation("scale"), Typed({PixelType::kUint8, PixelType::kUint16}));
      },
      "the files hold uint8 and uint16");
}

TEST(Intensities, OfOneValueAreZero) {
  ExampleImages::Image flat = ExampleImages::random({1, 4, 4}, 1);
  flat.pixels.fill_(7);
  const auto images = std::make_shared<ExampleImages>(std::vector<ExampleImages::Image>{flat});
  for (const char* kind : {"z-score", "z-score:over=set", "percentiles"})
    EXPECT_TRUE(whole_image(*normalised_by(kind, images), 0).eq(0).all().item<bool>()) << kind;
}

TEST(Intensities, NumbersThatAreNotFiniteDoNotCount) {
  ExampleImages::Image image = ExampleImages::random({1, 4, 4}, 1);
  image.pixels.fill_(2);
  image.pixels[0][0][0] = NAN;
  image.pixels[0][0][1] = std::numeric_limits<double>::infinity();
  image.pixels[0][0][2] = 4;
  const ExampleImages images({image});
  const ImageMoments moments = image_moments(images, 0).at(0);
  EXPECT_EQ(moments.count, 14);
  EXPECT_NEAR(moments.mean, 30.0 / 14, 1e-15);
  EXPECT_EQ(moments.high, 4);
}

TEST(Intensities, SurviveTheirText) {
  const auto images = examples();
  for (const char* text : {"", "scale", "z-score", "z-score:over=set", "percentiles",
                           "window:low=-3,high=1e3", "given:mean=0.1/3,deviation=1/2"}) {
    const Intensities made = fitted(parse_normalisation(text), *images);
    EXPECT_EQ(intensities_from_json(to_json(made)), made) << to_json(made);
  }
  for (const char* text :
       {"[]", "{}", R"({"kind": "other"})", R"({"kind": "fixed", "means": [1]})",
        R"({"kind": "fixed", "means": ["a"], "deviations": [1]})", R"({"kind": "window"})", "{"})
    EXPECT_NE(refusal([&] { intensities_from_json(text); }), "") << text;
}

TEST(Intensities, RefuseWhatIsNotKnown) {
  expect_refusal([] { parse_normalisation("zscore"); }, "did you mean z-score");
  expect_refusal([] { parse_normalisation("window:low=3,high=1"); }, "low=3 is not below high=1");
  expect_refusal([] { parse_normalisation("z-score:over=all"); }, "must be one of: image, set");
  expect_refusal([] { parse_normalisation("given:mean=1"); }, "1 mean and 0 deviations");
}

}  // namespace
}  // namespace tessera::intensities_test
