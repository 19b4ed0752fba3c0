// A run's folder in place of a model: `predict RUN` and `evaluate RUN` type nothing again.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace {

namespace fs = std::filesystem;

class PredictCli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = testing::TempDir() + "tessera_predict_" + std::to_string(getpid());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    before_ = fs::current_path();
    fs::current_path(folder_);
    trained_ = tessera(
        "train unet2d:base=2,depth=2,classes=2 --input 2x1x24x16 --data "
        "synthetic:samples=12,classes=2 --space 2x1 --run run --epochs 3 --seed 5 --json "
        "--monitor dice --save-weights last.safetensors");
  }
  static void TearDownTestSuite() {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  void SetUp() override { ASSERT_EQ(trained_.exit_code, 0) << trained_.err; }

  static std::string folder_;
  static fs::path before_;
  static Outcome trained_;
};
std::string PredictCli::folder_;
fs::path PredictCli::before_;
Outcome PredictCli::trained_;

void expect_refused(const std::string& arguments, const std::string& words, int exit_code = 2) {
  const Outcome outcome = tessera(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.err;
  EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
}

TEST_F(PredictCli, ARunIsWhatIsRetyped) {
  const Outcome run = tessera(
      "predict run --weights last --data synthetic:samples=5,classes=2 --output run.npy --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["samples"], 5);
  const Outcome typed = tessera(
      "predict unet2d:base=2,depth=2,classes=2 --input 2x1x24x16 --space 2x1 --seed 5 --weights "
      "last.safetensors --images synthetic:samples=5,classes=2 --output typed.npy");
  ASSERT_EQ(typed.exit_code, 0) << typed.err;
  EXPECT_EQ(read_all("run.npy"), read_all("typed.npy"));
  const Outcome elsewhere = tessera(
      "predict run --weights last --space 1x2 --data synthetic:samples=5,classes=2 --output "
      "other.npy");
  ASSERT_EQ(elsewhere.exit_code, 0) << elsewhere.err;
  EXPECT_EQ(read_all("run.npy"), read_all("other.npy"));
}

/// One image of 40 x 32, with the header that NumPy writes.
void write_image(const std::string& path) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 40, 32), }";
  header.resize(117, ' ');
  std::ofstream(path, std::ios::binary)
      << std::string("\x93NUMPY\x01\x00", 8) << std::string("\x76\x00", 2) << header << '\n'
      << std::string(4 * 40 * 32, '\x3e');
}

TEST_F(PredictCli, ImagesOfAnotherSizeWithoutLabels) {
  write_image("image.npy");
  const Outcome outcome = tessera(
      "predict run --images npy:image.npy --output maps/ --probabilities p.npy --flips "
      "--largest-component all");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("weights of run/checkpoints/step-"), std::string::npos) << outcome.err;
  EXPECT_EQ(fs::file_size("maps/image.npy"), 128u + 40 * 32);
  EXPECT_EQ(fs::file_size("p.npy"), 128u + 4 * 2 * 40 * 32);
  expect_refused("predict run --images npy:image.npy --probabilities w.npy --window 8x8",
                 "not larger than what the network sees");
  expect_refused("evaluate run --data npy:image.npy", "the images have no targets");
  expect_refused("train unet2d:base=2,depth=2 --data npy:image.npy --input 1x1x40x32 --run none",
                 "no targets");
}

TEST_F(PredictCli, EvaluatesARun) {
  const Outcome json =
      tessera("evaluate run --data synthetic:samples=6,classes=2 --json --output e.json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const nlohmann::json scores = nlohmann::json::parse(json.out);
  EXPECT_EQ(nlohmann::json::parse(read_all("e.json")), scores);
  EXPECT_EQ(scores["samples"], 6);
  ASSERT_EQ(scores["classes"].size(), 2u);
  for (const char* name : {"dice", "iou", "precision", "recall", "surface_dice"})
    EXPECT_TRUE(scores["classes"][0].contains(name)) << name;
  int64_t pixels = 0;
  for (const auto& row : scores["confusion"])
    for (const auto& count : row) pixels += count.get<int64_t>();
  EXPECT_EQ(pixels, 6 * 24 * 16);
  const Outcome text = tessera("evaluate run --data synthetic:samples=6,classes=2 --output e.csv");
  EXPECT_NE(text.out.find("6 samples: loss "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("Hausdorff 95%"), std::string::npos) << text.out;
  EXPECT_TRUE(read_all("e.csv").starts_with("class,dice,iou,precision,recall,hausdorff95"));
}

TEST_F(PredictCli, AClassifierHasNoMasks) {
  const Outcome trained = tessera(
      "train cnn2d:base=2,depth=2,classes=3 --input 2x1x16x16 --data "
      "synthetic:kind=classification,samples=12,classes=3 --run classes --steps 3");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.out.find("IoU"), std::string::npos) << trained.out;
  EXPECT_NE(trained.err.find("images/s"), std::string::npos) << trained.err;
  EXPECT_TRUE(read_all("classes/metrics.csv")
                  .starts_with("step,epoch,seconds,loss,learning_rate,gradient_norm,val_loss,"
                               "accuracy\n"));
  const Outcome scores =
      tessera("evaluate classes --data synthetic:kind=classification,samples=6,classes=3");
  ASSERT_EQ(scores.exit_code, 0) << scores.err;
  EXPECT_NE(scores.out.find("truth \\ prediction"), std::string::npos) << scores.out;
  EXPECT_EQ(scores.out.find("Dice"), std::string::npos) << scores.out;
  expect_refused(
      "train cnn2d:base=2,depth=2,classes=3 --input 2x1x16x16 --data "
      "synthetic:kind=classification,samples=12,classes=3 --monitor dice --steps 1 --run none",
      "labels per image have no dice; use loss or accuracy");
}

TEST_F(PredictCli, ClassesHaveTheNamesOfTheData) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 16), }";
  header.resize(117, ' ');
  for (const std::string name : {"cat", "dog, wild", "\xc3\xa4gypten"}) {
    fs::create_directories("animals/" + name);
    for (int i = 0; i < 2; ++i)
      std::ofstream(fmt::format("animals/{}/{}.npy", name, i), std::ios::binary)
          << std::string("\x93NUMPY\x01\x00", 8) << std::string("\x76\x00", 2) << header << '\n'
          << std::string(4 * 16 * 16, '\x3e');
  }
  const Outcome trained = tessera(
      "train cnn2d:base=2,depth=2,classes=3 --input 2x1x16x16 --data folder:animals --run animal "
      "--steps 2 --validation-fraction 0");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome text = tessera("evaluate animal --data folder:animals --output animal.csv");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("\n    class  precision"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\ndog, wild  "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\n  \xc3\xa4gypten  "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("truth \\ prediction        cat  dog, wild"), std::string::npos)
      << text.out;
  const std::string csv = read_all("animal.csv");
  EXPECT_TRUE(csv.starts_with("class,name,precision,recall\n0,cat,")) << csv;
  EXPECT_NE(csv.find("\n1,\"dog, wild\","), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nmean,,"), std::string::npos) << csv;
  const Outcome json = tessera("evaluate animal --data folder:animals --json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["classes"][1]["name"], "dog, wild");
}

// A folder of results is not an image, but a file in it may be: by its own name, by that of a link,
// or as one of a list.
TEST_F(PredictCli, LeavesTheImagesThatItReads) {
  fs::create_directories("scans/more");
  write_image("scans/a.npy");
  write_image("scans/more/b.npy");
  fs::create_directory_symlink("scans", "linked");
  fs::create_directory("links");
  fs::create_symlink("../scans/a.npy", "links/a.npy");
  std::ofstream("list.csv") << "image\nscans/a.npy\nscans/more/b.npy\n";
  const std::string image = read_all("scans/a.npy");
  expect_refused("predict run --images files:scans/a.npy --output scans/",
                 "[--output] scans/a.npy would overwrite what is read, scans/a.npy");
  expect_refused("predict run --images files:scans/a.npy --output p.npy --raw linked/",
                 "[--raw] linked/a.npy would overwrite");
  expect_refused("predict run --images files:links/a.npy --output scans/",
                 "scans/a.npy would overwrite what is read, links/a.npy");
  expect_refused("predict run --images list:list.csv --output scans/more/",
                 "[--output] scans/more/b.npy would overwrite");
  expect_refused("predict run --images list:list.csv --probabilities scans/a.npy",
                 "[--probabilities] scans/a.npy would overwrite");
  expect_refused("predict run --images files:scans/a.npy --output maps/ --raw maps/a.npy",
                 "maps/a.npy is written by --output, too");
  EXPECT_EQ(read_all("scans/a.npy"), image);
  EXPECT_EQ(read_all("scans/more/b.npy"), image);
  const Outcome beside =
      tessera("predict run --images list:list.csv --output scans/maps/ --window 40x32");
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_TRUE(fs::exists("scans/maps/b.npy"));
}

TEST_F(PredictCli, LeavesTheRunThatItReads) {
  const std::string description = read_all("run/run.json");
  const std::string evaluate = "evaluate run --data synthetic:samples=2,classes=2 --output ";
  expect_refused(evaluate + "run/run.json", "would overwrite what MODEL reads, run/run.json");
  expect_refused(evaluate + "./run/../run/metrics.csv", "what MODEL reads, run/metrics.csv");
  expect_refused(evaluate + "run/checkpoints/best/state.json", "reads, run/checkpoints");
  expect_refused("predict run --data synthetic:samples=2,classes=2 --output run/checkpoints/",
                 "reads, run/checkpoints");
  EXPECT_EQ(read_all("run/run.json"), description);
  const Outcome beside = tessera(evaluate + "run/scores.json");
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
}

TEST_F(PredictCli, RefusesWhatItCannotDo) {
  const std::string predict = "predict run --data synthetic:samples=2,classes=2 ";
  expect_refused(predict, "give it, --probabilities or --raw");
  expect_refused(predict + "--output x.bmp", "is not a name that ends in");
  expect_refused(predict + "--output x.nii", "holds one image, and there are 2 samples");
  expect_refused(predict + "--output x.npy --weights nowhere", "nowhere");
  expect_refused(predict + "--output x.npy --largest-component 7", "from 1 to 1");
  expect_refused("evaluate run --data synthetic:samples=2,classes=2 --window 8x8",
                 "not larger than what the network sees");
  expect_refused(predict + "--output x.npy --memory 1KiB", "[--memory]", 4);
  expect_refused("predict nowhere --data synthetic --output x.npy --weights best", "--weights");
  fs::create_directory("empty");
  std::ofstream("empty/run.json") << "{}";
  expect_refused("predict empty --data synthetic --output x.npy", "how the run was configured");
}

}  // namespace
