// Checkpoints that were damaged from outside, or belong to another model.

#include <fmt/format.h>

#include "tests/fault/train/train_fault.h"

namespace tessera::bad_checkpoint_test {
namespace {

class BadCheckpoint : public TrainFault {
 protected:
  void SetUp() override {
    ASSERT_EQ(play(command({"--steps", "8"})).exit_code, 0);
    ASSERT_GE(checkpoints(run()).size(), 3u);
  }

  void truncate(const std::string& path) {
    const std::string bytes = read_file(path);
    ASSERT_GT(bytes.size(), 2u);
    write_file(path, bytes.substr(0, bytes.size() / 2));
  }
  /// A bit in the midst of the last tensor.
  void flip_bit(const std::string& path) {
    std::string bytes = read_file(path);
    ASSERT_GT(bytes.size(), 16u);
    bytes[bytes.size() - 3] ^= 4;
    write_file(path, bytes);
  }

  /// The next start passes over all but the checkpoint of this step.
  void expect_falls_back_to(int64_t step) {
    const Outcome outcome = play(command());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_contains(outcome.errors, "it is passed over");
    expect_contains(outcome.errors, fmt::format("resumed at step {} from ", step));
    EXPECT_EQ(weights(), undisturbed_weights());
    expect_whole_checkpoints();
  }
};

TEST_F(BadCheckpoint, ThatIsTruncatedIsPassedOver) {
  truncate(checkpoints(run()).back() + "/tensors.safetensors");
  expect_falls_back_to(6);
}

TEST_F(BadCheckpoint, WithOneBitFlippedOrHalfAStateIsPassedOver) {
  flip_bit(run() + "/checkpoints/step-000008/tensors.safetensors");
  truncate(run() + "/checkpoints/step-000006/state.json");
  expect_falls_back_to(4);
}

TEST_F(BadCheckpoint, WithoutAGoodOneTheRunSaysSoAndStartsAnew) {
  for (const std::string& checkpoint : checkpoints(run()))
    truncate(checkpoint + "/tensors.safetensors");
  const Outcome outcome = play(command());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_contains(outcome.errors, "step-000008 cannot be used");
  expect_contains(outcome.errors, "starts anew");
  EXPECT_EQ(outcome.errors.find("resumed at"), std::string::npos) << outcome.errors;
  EXPECT_EQ(weights(), undisturbed_weights());
  expect_whole_checkpoints();
}

TEST_F(BadCheckpoint, ThatIsAskedForByNameIsAnError) {
  const std::string path = checkpoints(run()).back();
  truncate(path + "/tensors.safetensors");
  for (const std::string& asked : {path, file("nowhere")}) {
    const Outcome outcome = play(command({"--resume", asked}));
    EXPECT_EQ(outcome.exit_code, 2);
    expect_contains(outcome.errors, asked);
  }
}

TEST_F(BadCheckpoint, OfAnotherModelIsRefused) {
  auto words = command();
  words[2] = "unet2d:base=4,depth=2,classes=2";
  const auto before = checkpoints(run());
  for (const char* launch : {"threads", "mpi"}) {
    if (launch == std::string("mpi") && !mpirun_is_installed()) continue;
    SCOPED_TRACE(launch);
    auto launched = words;
    launched.insert(launched.end(), {"--launch", launch});
    const Outcome outcome = play(launched);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    expect_contains(outcome.errors, "holds a run with other settings");
    expect_contains(outcome.errors,
                    "MODEL was \"unet2d:base=2,depth=2,classes=2\", is \"unet2d:base=4");
  }
  EXPECT_EQ(checkpoints(run()), before);
  expect_resumes_and_finishes();
}

}  // namespace
}  // namespace tessera::bad_checkpoint_test
