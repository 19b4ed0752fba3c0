// One file for two purposes is refused before anything is written.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/attack/writers/job.h"
#include "tests/attack/writers/snapshot.h"

namespace tessera::same_file_test {
namespace {

namespace fs = std::filesystem;
using namespace attack;

/// The command with some options' values replaced, or added.
Words with(Words words, const std::map<std::string, std::string>& values) {
  for (const auto& [option, value] : values) {
    const auto found = std::find(words.begin(), words.end(), option);
    if (found != words.end())
      *(found + 1) = value;
    else
      words.insert(words.end(), {option, value});
  }
  return words;
}

TEST(OneFile, ForTwoPurposesIsRefusedBeforeAnythingIsWritten) {
  const Folder folder;
  prepare_inputs(folder.path());
  fs::create_directory(folder / "sub");
  fs::create_symlink("sub", folder / "linked");
  write_file(folder / "behind.npy", "old");
  fs::create_symlink("behind.npy", folder / "link.npy");
  write_file(folder / "images.npy", "images");
  write_file(folder / "run.toml",
             "[model]\nsave_weights = 'run/metrics.csv'\n[run]\nfolder = 'run'\n");
  write_file(folder / "net.pt", "a model");
  const Words predict = job("predict").words, plan = job("plan").words, train = job("train").words;
  const std::vector<std::pair<Words, std::string>> cases{
      {with(predict, {{"--output", "a.npy"}, {"--raw", "a.npy"}}), "[--raw] a.npy"},
      {with(predict, {{"--output", "a.npy"}, {"--probabilities", "./sub/../a.npy"}}),
       "[--probabilities] ./sub/../a.npy"},
      {with(predict, {{"--output", "sub/a.npy"}, {"--raw", "linked/a.npy"}}), "linked/a.npy"},
      {with(predict, {{"--output", "behind.npy"}, {"--raw", "link.npy"}}), "link.npy"},
      {with(predict, {{"--output", folder / "a.png"}, {"--picture", "a.png"}}), "--picture"},
      {with(predict, {{"--images", "npy:images.npy,targets.npy"}, {"--output", "images.npy"}}),
       "[--output] images.npy would overwrite what --images reads"},
      {with(predict, {{"--raw", "weights.safetensors"}}), "what --weights reads"},
      {with(plan, {{"--trace", "plan.json"}}), "plan.json"},
      {with(plan, {{"--config", "run.toml"}, {"--trace", "linked/../run.toml"}}), "--config"},
      {{"inspect", "unet2d", "--dot", "a", "--svg", "./a"}, "[--svg] ./a"},
      {{"inspect", "./net.pt", "--dot", "net.pt"}, "what MODEL reads"},
      {with(train, {{"--save-weights", "run/metrics.csv"}}), "[--run] run/metrics.csv"},
      {with(train, {{"--dump-gradients", "./run/run.json"}}), "[--run] run/run.json"},
      {with(train, {{"--save-weights", "run/checkpoints/step-000002/tensors.safetensors"}}),
       "which is for the checkpoints"},
      {with(train,
            {{"--init-weights", "weights.safetensors"}, {"--save-weights", "weights.safetensors"}}),
       "what --init-weights reads"},
      {{"train", "unet2d", "--config", "run.toml"}, "[--run] run/metrics.csv"},
      {{"verify", "unet2d", "--dump-gradients", "a", "--save-weights", "a"}, "--dump-gradients"}};
  const Snapshot before = snapshot(folder.path());
  for (const auto& [words, part] : cases) {
    const Ending ending = run(words, folder.path());
    EXPECT_EQ(ending.exit_code, 2) << part;
    EXPECT_NE(ending.err.find(part), std::string::npos) << ending.err << "\nwithout " << part;
    EXPECT_EQ(snapshot(folder.path()), before) << part;
  }
}

/// What looks alike is not always the same: a configuration whose training would write what a
/// prediction reads, hard links, and the checkpoints of an earlier run.
TEST(OneFile, IsNotSeenWhereThereAreTwo) {
  const Folder folder;
  prepare_inputs(folder.path());
  write_file(folder / "run.toml",
             "[model]\nname = 'unet2d:base=2,depth=2,classes=2'\ninput = '1x1x16x16'\n"
             "save_weights = 'weights.safetensors'\n");
  write_file(folder / "classes.npy", "old");
  fs::create_hard_link(folder / "classes.npy", folder / "raw.npy");
  Words words = job("predict").words;
  words.insert(words.end(), {"--config", "run.toml"});
  const Ending ending = run(words, folder.path());
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  const auto wanted = undisturbed(job("predict"));
  for (const auto& [name, content] : wanted)
    EXPECT_TRUE(read_file(folder / name) == content) << name;

  ASSERT_EQ(run(job("train").words, folder.path()).exit_code, 0);
  const Ending resumed =
      run(with(job("train").words, {{"--resume", "run/checkpoints/step-000002"}, {"--steps", "3"}}),
          folder.path());
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

}  // namespace
}  // namespace tessera::same_file_test
