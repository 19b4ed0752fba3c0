// `tessera data`: what would be read, as text, as JSON and as a picture.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace {

TEST(DataCommand, SaysWhatWouldBeRead) {
  const Outcome outcome = tessera("data synthetic:samples=6,size=48x40,classes=3 --samples 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"samples     6\n", "1x48x40 (channels x space)", "2 samples read",
                            "labels per pixel, 3 classes", "for training: 5 samples of 1x48x40"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

TEST(DataCommand, CountsWhatItSays) {
  const Outcome outcome = tessera(
      "data synthetic:samples=6,size=48x40,classes=3 --samples 0 --crop 32x32 --normalise z-score "
      "--patches-per-image 4 --augment flip+noise --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  int64_t pixels = 0, labels = json["ignored_labels"];
  for (const auto& count : json["numbers"]["histogram"]) pixels += count.get<int64_t>();
  for (const auto& count : json["labels"]) labels += count.get<int64_t>();
  EXPECT_EQ(pixels, 6 * 48 * 40);
  EXPECT_EQ(labels, 6 * 48 * 40);
  EXPECT_EQ(json["train"]["samples"], 20);
  EXPECT_EQ(json["train"]["image"], (std::vector<int64_t>{1, 32, 32}));
  EXPECT_EQ(json["validation"]["samples"], 4);  // 2 x 2 patches cover 48 x 40
  EXPECT_EQ(json["intensities"]["kind"], "z-score");
  EXPECT_LT(std::abs(json["train"]["numbers"]["channels"][0]["mean"].get<double>()), 0.5);
}

TEST(DataCommand, SplitsAsTrainingWould) {
  const Outcome outcome = tessera("data synthetic:samples=6,size=16x16 --fold 2/3");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("for validation: 2 samples"), std::string::npos) << outcome.out;
}

#ifdef TESSERA_HAS_PNG
TEST(DataCommand, DrawsSamples) {
  const std::string picture =
      testing::TempDir() + "tessera_data_" + std::to_string(getpid()) + ".png";
  const Outcome outcome = tessera(
      "data synthetic:samples=4,size=32x32x32 --crop 24x24x16 --augment flip+affine --picture " +
      picture);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(std::filesystem::file_size(picture), 1000u);
  std::filesystem::remove(picture);
}
#endif

TEST(DataCommand, RefusesWhatTrainingWouldRefuse) {
  const auto refuses = [](const std::string& arguments, const std::string& words) {
    const Outcome outcome = tessera("data " + arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  refuses("", "there is nothing to look at");
  refuses("synthetic --augment flop", "did you mean flip");
  refuses("synthetic --normalise window:low=2,high=1", "low=2 is not below high=1");
  refuses("synthetic --spacing 1x1", "does not say its own spacing");
  refuses("synthetic --crop 8x8x8", "8x8x8 has 3 sizes");
  refuses("synthetic --picture x.jpg", "ends in .png");
}

TEST(DataCommand, ListsAugmentations) {
  const Outcome outcome = tessera("data --augmentations");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("rotate=15"), std::string::npos) << outcome.out;
}

}  // namespace
