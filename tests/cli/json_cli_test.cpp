// --json is one JSON document on stdout and nothing else, and files have the format of their name.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace {

class JsonCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_json_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  nlohmann::json document(const std::string& arguments) const {
    const Outcome outcome = tessera(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.err;
    nlohmann::json json = nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << arguments << " printed " << outcome.out;
    return json;
  }

 private:
  std::string folder_;
};

const std::string kTinyUnet = " unet2d:base=2,depth=2,classes=2 --input 2x1x16x16 ";

TEST_F(JsonCli, EveryCommandPrintsOneDocument) {
  EXPECT_TRUE(document("models").is_array());
  EXPECT_EQ(document("models unet2d")["name"], "unet2d");
  EXPECT_FALSE(document("models unet2d --parameters")["parameters"].empty());
  const nlohmann::json operators = document("models --operators");
  EXPECT_GT(operators.size(), 20u);
  for (const char* key : {"family", "names", "becomes"}) EXPECT_TRUE(operators[0].contains(key));
  EXPECT_EQ(document("models --losses")[0]["name"], "cross_entropy");
  EXPECT_FALSE(document("inspect unet2d:base=2 --dot " + path("g.dot")).empty());
  EXPECT_EQ(document("plan" + kTinyUnet + "--space 2x1 --trace " + path("p.json"))["ranks"], 2);
  EXPECT_EQ(document("verify" + kTinyUnet + "--steps 1 --print-loss")["ok"], true);
  EXPECT_EQ(document("bench" + kTinyUnet + "--iterations 1 --warmup 0")["ranks"], 1);
}

TEST_F(JsonCli, TrainingAndPredictingPrintOneDocument) {
  const std::string train = "train" + kTinyUnet + "--data synthetic:samples=8,classes=2 --run " +
                            path("run") + " --save-weights " + path("w.safetensors");
  const nlohmann::json trained = document(train + " --steps 3 --print-loss");
  EXPECT_EQ(trained["end"], "finished");
  EXPECT_EQ(trained["steps"], 3);
  EXPECT_EQ(trained["steps_run"], 3);
  EXPECT_EQ(trained["run"], path("run"));
  ASSERT_EQ(trained["losses"].size(), 3u);
  EXPECT_EQ(trained["losses"][2], trained["loss"]);
  const nlohmann::json predicted =
      document("predict" + kTinyUnet + "--weights " + path("w.safetensors") +
               " --images synthetic:samples=1,classes=2 --output " + path("c.npy"));
  EXPECT_EQ(predicted["samples"], 1);
  EXPECT_EQ(predicted["classes"], path("c.npy"));
  EXPECT_FALSE(predicted.contains("raw"));
}

/// Nothing is half said.
TEST_F(JsonCli, ErrorsPrintNothingOnStdout) {
  const std::vector<std::string> bad{
      "train" + kTinyUnet + "--json", "predict" + kTinyUnet + "--images synthetic --json",
      "plan unet2d --input 1x3x32x32 --space 33x1 --json", "models nosuch --json"};
  for (const std::string& arguments : bad) EXPECT_EQ(tessera(arguments).out, "") << arguments;
}

TEST_F(JsonCli, AFileIsWrittenInTheFormatOfItsName) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = tessera(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  const std::string predict = "predict" + kTinyUnet + "--images synthetic --weights nothing ";
  refused(predict + "--output x.bmp", "[--output] x.bmp is not a name that ends in .npy");
  refused(predict + "--output x", "[--output] x is not a name that ends in .npy");
  refused(predict + "--raw x.jpg", "[--raw] x.jpg");
  refused(predict + "--probabilities x.npz", "[--probabilities] x.npz");
  refused(predict + "--output x.npy --picture x.jpg", "[--picture] x.jpg is not a name that ends");
  refused("train" + kTinyUnet + "--data synthetic --save-weights w.pth", ".safetensors or .pt");
  refused("verify" + kTinyUnet + "--dump-gradients g.npy", "[--dump-gradients] g.npy");
}

TEST_F(JsonCli, OneOfThemIsSingular) {
  const Outcome one = tessera("verify" + kTinyUnet + "--steps 1");
  EXPECT_NE(one.out.find("on 1 worker ("), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("1 step of sgd"), std::string::npos) << one.out;
  const Outcome two = tessera("verify" + kTinyUnet + "--space 2x1");
  EXPECT_NE(two.out.find("on 2 workers ("), std::string::npos) << two.out;
}

}  // namespace
