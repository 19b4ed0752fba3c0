// Models, losses and comparisons from outside, as a user meets them. Model files are the business
// of tests/import.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace {

/// A folder of the test's own.
class ModelCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_models_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// A float64 array of zeros, ones, twos, ... modulo 7.
  void write_npy(const std::string& name, const std::string& shape, size_t count) const {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
    header += '\n';
    std::ofstream file(path(name), std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() % 256)
         << static_cast<char>(header.size() / 256) << header;
    for (size_t i = 0; i < count; ++i) {
      const double number = static_cast<double>(i % 7) / 7;
      file.write(reinterpret_cast<const char*>(&number), sizeof(number));
    }
  }

  std::string folder_;
};

TEST_F(ModelCli, TheDocumentedOperatorsAreThoseOfTheCode) {
  const std::string page = read_all(std::string(TESSERA_SOURCE) + "/docs/models.md");
  EXPECT_NE(page.find(tessera("models --operators").out), std::string::npos)
      << "put the output of `tessera models --operators` between the marks in docs/models.md";
  EXPECT_NE(page.find(tessera("models --losses").out), std::string::npos)
      << "put the output of `tessera models --losses` into docs/models.md";
}

TEST_F(ModelCli, InspectCountsAndDraws) {
  const Outcome outcome =
      tessera("inspect resnet18 --json --svg " + path("net.svg") + " --dot " + path("net.dot"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("11689512"), std::string::npos);
  EXPECT_NE(read_all(path("net.svg")).find("</svg>"), std::string::npos);
  EXPECT_NE(read_all(path("net.dot")).find("digraph"), std::string::npos);
  EXPECT_NE(tessera("inspect unet2d --sort flops --operators 3").out.find("convolution"),
            std::string::npos);
}

TEST_F(ModelCli, AnyLossOnAnyModel) {
  for (const char* loss :
       {"bce", "dice:average=batch", "0.5*bce+0.5*dice", "focal:gamma=1.5", "mse", "l1",
        "smooth_l1", "huber", "cross_entropy:label_smoothing=0.1"}) {
    const Outcome outcome = tessera(
        std::string(
            "verify unet2d:base=2,depth=2,classes=3 --input 1x1x17x13 --space 2x2 --loss ") +
        loss);
    EXPECT_EQ(outcome.exit_code, 0) << loss << outcome.out << outcome.err;
  }
  const Outcome unknown = tessera("verify unet2d --loss wrong");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("known: cross_entropy, bce"), std::string::npos) << unknown.err;
}

TEST_F(ModelCli, ABatchFromFilesAndEverythingBack) {
  write_npy("x.npy", "(2, 1, 12, 10)", 240);
  write_npy("t.npy", "(2, 1, 12, 10)", 240);
  const std::string job =
      "verify unet2d:base=2,depth=2,classes=1 --loss mse --steps 3 --space 2x2"
      " --learning-rate 0.1 --input-npy " +
      path("x.npy") + " --target-npy ";
  const Outcome outcome =
      tessera(job + path("t.npy") + " --print-loss --dump-gradients " + path("g.safetensors") +
              " --save-weights " + path("w.safetensors"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("step 2 loss 0."), std::string::npos) << outcome.out;
  for (const char* file : {"g.safetensors", "w.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(path(file))) << file;
  const nlohmann::json json = nlohmann::json::parse(tessera(job + path("t.npy") + " --json").out);
  EXPECT_EQ(json["losses"].size(), 3u);

  write_npy("t2.npy", "(2, 1, 12, 9)", 216);
  const Outcome wrong = tessera(job + path("t2.npy"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("holds 2x1x12x9, the model's target is 2x1x12x10"), std::string::npos)
      << wrong.err;
  const Outcome many = tessera(job + path("t.npy") + "," + path("t.npy"));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(many.err.find("this model and loss take 1"), std::string::npos) << many.err;
}

/// The file of a zoo model, written on a grid, is a model file, for images of other sizes, too.
TEST_F(ModelCli, AZooModelAsAModelFile) {
  const Outcome written = tessera(
      "train unet2d:base=2,depth=3,classes=3 --input 2x1x16x16 --data "
      "synthetic:samples=4,classes=3 --space 2x1 --steps 2 --run " +
      path("run") + " --save-weights " + path("w.pt"));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const Outcome proved = tessera("verify " + path("w.pt") + " --input 2x1x15x21 --space 2x2");
  EXPECT_EQ(proved.exit_code, 0) << proved.out << proved.err;
}

/// Regression: targets are numbers, there are no classes to score, predictions are raw.
TEST_F(ModelCli, TrainsOnNumbers) {
  write_npy("x.npy", "(6, 1, 12, 10)", 720);
  write_npy("t.npy", "(6, 2, 12, 10)", 1440);
  const std::string model = " unet2d:base=2,depth=2,classes=2 --input 2x1x12x10 ";
  const std::string data = "npy:" + path("x.npy") + "," + path("t.npy");
  const std::string train = "train" + model +
                            "--loss l1 --space 1x2 --steps 4 --print-loss --data " + data +
                            " --run " + path("run");
  const Outcome trained =
      tessera(train + " --validation-fraction 0.3 --dump-gradients " + path("g.safetensors") +
              " --save-weights " + path("w.safetensors"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("step 4 loss 0."), std::string::npos) << trained.out;
  EXPECT_EQ(trained.out.find("IoU"), std::string::npos) << trained.out;
  EXPECT_TRUE(std::filesystem::exists(path("g.safetensors")));
  const Outcome raw = tessera("predict" + model + "--space 2x1 --weights " + path("w.safetensors") +
                              " --images " + data + " --raw " + path("y.npy"));
  EXPECT_EQ(raw.exit_code, 0) << raw.err;
  EXPECT_GT(std::filesystem::file_size(path("y.npy")), 4u * 1440);

  const auto refused = [&](const std::string& options, const char* words) {
    const Outcome outcome =
        tessera("train" + model + options + " --data " + data + " --run " + path("other"));
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  refused("", "the targets are numbers, the loss takes labels");
  refused("--loss mse --monitor dice", "targets that are numbers have no dice");
  refused("--loss mse --output-weights 1,2", "2");
}

/// A vector of targets is what a network with one number each is trained with in PyTorch, too.
TEST_F(ModelCli, OneNumberEachNeedsNoChannel) {
  write_npy("x.npy", "(6, 1, 16, 16)", 1536);
  write_npy("with.npy", "(6, 1)", 6);
  write_npy("without.npy", "(6,)", 6);
  const std::string model =
      " cnn2d:classes=1,base=2,depth=2 --input 2x1x16x16 --space 2x1 --loss mse ";
  std::vector<std::string> losses;
  for (const std::string name : {"with", "without"}) {
    const Outcome trained =
        tessera("train" + model + "--steps 4 --print-loss --data npy:" + path("x.npy") + "," +
                path(name + ".npy") + " --run " + path(name) + " --validation-fraction 0.3");
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const size_t begin = trained.out.find("step 1 loss");
    ASSERT_NE(begin, std::string::npos) << trained.out;
    losses.push_back(trained.out.substr(begin, trained.out.find("checkpoint") - begin));
  }
  EXPECT_EQ(losses[0], losses[1]);
  write_npy("x2.npy", "(2, 1, 16, 16)", 512);
  write_npy("t2.npy", "(2,)", 2);
  const Outcome verified =
      tessera("verify cnn2d:classes=1,base=2,depth=2 --space 2x1 --loss mse --input-npy " +
              path("x2.npy") + " --target-npy " + path("t2.npy"));
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

TEST_F(ModelCli, RefusesWhatCannotBe) {
  const auto refused = [](const std::string& arguments, const char* words) {
    const Outcome outcome = tessera(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << arguments << ": " << outcome.err;
  };
  refused("verify nothing.pt", "give batch x channels x spatial sizes");
  refused("verify nothing.pt --input 1x3x8x8", "[model] cannot read nothing.pt: No such file");
  refused("verify unet2d --input-npy x.npy", "go together");
  refused("verify unet2d --output-weights a", "not a list of numbers");
  refused("predict unet2d --images synthetic --output o.npy", "[--weights]");
  refused("inspect nothing", "not a known model");
}

}  // namespace
