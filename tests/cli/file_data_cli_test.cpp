// Training on one's own files, as a user meets it: folders of images and masks, a folder for each
// class, lists, folds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace {

class FileDataCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_data_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Rows of `low` above rows of `high`, of 8 x 8 bytes unless the height says otherwise.
  void write_image(const std::string& name, uint8_t low, uint8_t high, int rows = 8) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::vector<uint8_t> bytes(static_cast<size_t>(rows) * 8, low);
    std::fill(bytes.begin() + rows / 2 * 8, bytes.end(), high);
    const std::string header =
        fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, 8), }}\n", rows);
    std::ofstream(path(name), std::ios::binary)
        << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header
        << std::string(bytes.begin(), bytes.end());
  }

  std::string folder_;
};

const std::string kUnet = "train unet2d:base=2,depth=2,classes=2 --input 2x1x8x8 --epochs 1 ";

TEST_F(FileDataCli, TrainsOnAFolderOfImagesAndMasks) {
  for (int i = 0; i < 6; ++i) {
    write_image(fmt::format("set/images/{}.npy", i), 0, 200);
    write_image(fmt::format("set/masks/{}.npy", i), 0, 255);
  }
  const std::string data = "--data folder:" + path("set");
  const Outcome plain = tessera(kUnet + data + " --run " + path("plain"));
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_NE(plain.err.find("label 255 in sample"), std::string::npos) << plain.err;
  const Outcome trained = tessera(
      kUnet + data + ",values=0:0/255:1 --fold 2/3 --space 2x1 --json --run " + path("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out)["steps"], 2);  // 4 of 6 samples, two at a time
  const Outcome other = tessera(kUnet + data + ",values=0:0/255:1 --fold 1/3 --run " + path("run"));
  EXPECT_NE(other.err.find("--fold was \"2/3\", is \"1/3\""), std::string::npos) << other.err;
  const Outcome inside = tessera(kUnet + data + ",values=auto --run " + path("set/run"));
  EXPECT_EQ(inside.exit_code, 2);
  EXPECT_NE(inside.err.find("would overwrite what --data reads"), std::string::npos) << inside.err;
}

TEST_F(FileDataCli, TrainsOnAFolderForEachClass) {
  for (int i = 0; i < 3; ++i) {
    write_image(fmt::format("set/train/dark/{}.npy", i), 0, 10);
    write_image(fmt::format("set/train/light/{}.npy", i), 240, 250);
  }
  write_image("set/val/dark/9.npy", 0, 10);
  write_image("set/test/light/9.npy", 240, 250);
  const Outcome trained =
      tessera("train cnn2d:classes=2,depth=2 --input 2x1x8x8 --epochs 1 --json --data folder:" +
              path("set") + " --run " + path("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out)["steps"], 3);
  const Outcome few =
      tessera("train cnn2d:classes=2,depth=2 --input 2x1x8x8 --data folder:" + path("set") +
              ",classes=3 --run " + path("few"));
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_NE(few.err.find("3 classes, the model has 2"), std::string::npos) << few.err;
}

/// nnU-Net's layout: images for tests have no labels, and everybody passes them over.
TEST_F(FileDataCli, TestsMayLackTargets) {
  for (int i = 0; i < 4; ++i) {
    write_image(fmt::format("set/imagesTr/{}_0000.npy", i), 0, 200);
    write_image(fmt::format("set/labelsTr/{}.npy", i), 0, 1);
  }
  write_image("set/imagesTs/9_0000.npy", 0, 200);
  const Outcome shown = tessera("data folder:" + path("set") + " --json");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(nlohmann::json::parse(shown.out)["labels"], (std::vector<int64_t>{128, 128}));
  const Outcome trained = tessera(kUnet + "--data folder:" + path("set") + " --run " + path("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome scored =
      tessera("evaluate " + path("run") + " --json --data folder:" + path("set"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(nlohmann::json::parse(scored.out)["samples"], 4);
}

TEST_F(FileDataCli, TrainsOnAListAndOnOtherSizes) {
  write_image("a.npy", 0, 200);
  write_image("m.npy", 0, 1);
  std::ofstream(path("l.csv")) << "image,mask,split,weight\na.npy,m.npy,train,2\n"
                                  "a.npy,m.npy,train,1\na.npy,m.npy,val,\na.npy,,test,\n";
  const std::string train = kUnet + "--json --data list:" + path("l.csv") + " --run ";
  const Outcome trained = tessera(train + path("run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out)["steps"], 1);
  write_image("b.npy", 0, 200, 10);
  write_image("n.npy", 0, 1, 10);
  std::ofstream(path("l.csv"), std::ios::app) << "b.npy,n.npy,train,\n";
  // Images of different sizes are cut into patches of the network's size.
  EXPECT_EQ(tessera(train + path("other")).exit_code, 0);
  std::ofstream(path("l.csv")) << "image\na.npy\n";
  const Outcome alone = tessera(train + path("third"));
  EXPECT_NE(alone.err.find("the images have no targets"), std::string::npos) << alone.err;
}

}  // namespace
