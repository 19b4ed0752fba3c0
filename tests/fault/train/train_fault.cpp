#include "tests/fault/train/train_fault.h"

#include <algorithm>

namespace tessera {
namespace {

using Words = std::vector<std::string>;

/// Batch normalisation, momentum, a validation set with a best checkpoint, and an epoch of several
/// steps: state that a resumed run could lose.
Words command_in(const std::string& folder) {
  return {TESSERA_PROGRAM,
          "train",
          "unet2d:base=2,depth=2,classes=2",
          "--input",
          "2x1x24x16",
          "--data",
          "synthetic:samples=12,classes=2",
          "--space",
          "3x1",
          "--steps",
          std::to_string(kSteps),
          "--checkpoint-interval",
          "2",
          "--run",
          folder + "/run",
          "--save-weights",
          folder + "/weights.safetensors"};
}

}  // namespace

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words TrainFault::command(const Words& more) const {
  Words words = command_in(folder_.path());
  for (size_t i = 0; i < more.size(); i += 2) {
    const auto found = std::find(words.begin(), words.end(), more[i]);
    if (found != words.end())
      *(found + 1) = more.at(i + 1);
    else
      words.insert(words.end(), {more[i], more.at(i + 1)});
  }
  return words;
}

TrainFault::Outcome TrainFault::play(const Words& words, const ProgramOptions& options) {
  Program program(words, file("log"), options);
  const auto exit_code = program.wait();
  EXPECT_TRUE(exit_code) << "the program hangs";
  return {exit_code.value_or(-1), program.errors()};
}

void TrainFault::expect_resumes_and_finishes(const Words& more) {
  const Outcome outcome = play(command(more));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_contains(outcome.errors, "resumed at step ");
  EXPECT_EQ(weights(), undisturbed_weights()) << "the weights differ from the undisturbed run's";
  expect_whole_checkpoints();
}

void TrainFault::expect_undisturbed_weights(const Words& more) {
  const Words on_threads = with(more, {"--launch", "threads"});
  const Outcome resumed = play(command(on_threads));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  expect_contains(resumed.errors, "resumed at step ");
  const Outcome undisturbed = play(command(
      with(on_threads, {"--run", file("other"), "--save-weights", file("other.safetensors")})));
  EXPECT_EQ(undisturbed.exit_code, 0) << undisturbed.errors;
  EXPECT_EQ(weights(), read_file(file("other.safetensors")));
}

void TrainFault::expect_whole_checkpoints() const {
  for (const std::string& checkpoint : checkpoints(run()))
    EXPECT_EQ(fault_of_checkpoint(checkpoint), "") << checkpoint;
}

const std::string& TrainFault::undisturbed_weights() {
  static const std::string weights = [] {
    const TemporaryFolder folder;
    Program program(command_in(folder.path()), folder.path() + "/log");
    EXPECT_EQ(program.wait(), 0) << program.errors();
    return read_file(folder.path() + "/weights.safetensors");
  }();
  EXPECT_FALSE(weights.empty());
  return weights;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << text;
}

}  // namespace tessera
