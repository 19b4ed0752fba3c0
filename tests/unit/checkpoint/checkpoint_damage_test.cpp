// Damage from outside: bytes changed, cut off or exchanged. A damaged checkpoint is refused with
// its name and the fault, or (a changed blank) means what it meant; never does it load as something
// else.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/graph/checksum.h"
#include "tests/unit/checkpoint/example_state.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::checkpoint_damage_test {
namespace {

namespace fs = std::filesystem;

class CheckpointDamage : public ::testing::Test {
 protected:
  CheckpointDamage() : store_(folder_.path(), 3, [](const std::string&) {}) {
    path_ = store_.save(state_, false);
  }

  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string load_refusal() {
    const std::string message = refusal([&] { store_.load(path_); });
    EXPECT_TRUE(has(message, path_)) << message;
    return message;
  }
  /// True where the bytes are refused; where they are not, they must mean the same.
  bool refused_or_same(const char* name, const std::string& bytes) {
    write_bytes(file(name), bytes);
    try {
      EXPECT_TRUE(same_state(store_.load(path_), state_)) << name;
      return false;
    } catch (const InvalidInput&) {
      return true;
    }
  }

  ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  TrainingState state_ = example_state(7);
  CheckpointStore store_;
  std::string path_;
};

TEST_F(CheckpointDamage, NoChangedByteGoesUnnoticed) {
  for (const char* name : {"state.json", "tensors.safetensors"}) {
    const std::string bytes = read_bytes(file(name));
    size_t refused = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      for (int change : {0x01, 0x04, 0x80}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ change);
        refused += refused_or_same(name, changed) ? 1 : 0;
      }
    // What may pass: a blank turned into another one.
    EXPECT_GT(refused, bytes.size() * 3 * 95 / 100) << name;
    EXPECT_FALSE(refused_or_same(name, bytes));
  }
}

TEST_F(CheckpointDamage, EveryTruncationIsFound) {
  for (const char* name : {"state.json", "tensors.safetensors"}) {
    const std::string bytes = read_bytes(file(name));
    const size_t last = name == std::string("state.json") ? bytes.size() - 1 : bytes.size();
    for (size_t size = 0; size < last; ++size)  // without its last line break the text is whole
      EXPECT_TRUE(refused_or_same(name, bytes.substr(0, size))) << name << " cut to " << size;
    write_bytes(file(name), bytes);
  }
}

TEST_F(CheckpointDamage, AMissingFileIsNamed) {
  fs::rename(file("tensors.safetensors"), file("elsewhere"));
  EXPECT_TRUE(has(load_refusal(), "tensors.safetensors"));
  fs::rename(file("state.json"), file("elsewhere"));
  EXPECT_TRUE(has(load_refusal(), "it has no state.json"));
}

TEST_F(CheckpointDamage, AnotherFilesTensorsAreFound) {
  const std::string other = store_.save(example_state(8), false);
  fs::copy_file(other + "/tensors.safetensors", file("tensors.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has(load_refusal(), "does not match its checksum"));
  const std::string larger = store_.save(example_state(9, 7), false);
  fs::copy_file(larger + "/tensors.safetensors", file("tensors.safetensors"),
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has(load_refusal(), "were written"));
}

TEST_F(CheckpointDamage, AnEditedStateIsFound) {
  std::string text = read_bytes(file("state.json"));
  const size_t place = text.find("\"step\": 7");
  ASSERT_NE(place, std::string::npos) << text;
  write_bytes(file("state.json"), text.replace(place, 9, "\"step\": 8"));
  EXPECT_TRUE(has(load_refusal(), "damaged or edited"));
}

TEST_F(CheckpointDamage, ForeignFilesAndVersionsAreNamed) {
  write_bytes(file("state.json"), "{\"epoch\": 3}");
  EXPECT_TRUE(has(load_refusal(), "not the state of a Tessera checkpoint"));
  write_bytes(file("state.json"), "[1, 2]");
  EXPECT_TRUE(has(load_refusal(), "not the state of a Tessera checkpoint"));
  write_bytes(file("state.json"), "{\"format\": \"tessera-checkpoint\", \"version\": 2}");
  EXPECT_TRUE(has(load_refusal(), "format version 2; this program reads 1"));
  write_bytes(file("state.json"), "{\"format\": \"tessera-checkpoint\"}");
  EXPECT_TRUE(has(load_refusal(), "format version null"));
  write_bytes(file("state.json"), "{\"format\": \"tessera-checkpoint\", \"version\": 1}");
  EXPECT_TRUE(has(load_refusal(), "truncated or damaged"));
}

TEST_F(CheckpointDamage, TheLatestPassesOverIt) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  store_.save(example_state(8), true);
  store_.save(example_state(9), true);
  CheckpointStore reader(folder_.path(), 3, warn);
  const std::string newest = folder_.file("step-000009");
  std::string bytes = read_bytes(newest + "/tensors.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(newest + "/tensors.safetensors", bytes);
  EXPECT_EQ(reader.latest_valid(), folder_.file("step-000008"));
  EXPECT_EQ(reader.best(), folder_.file("step-000008"));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(has(warnings[0], newest) && has(warnings[0], "passed over")) << warnings[0];
  fs::remove(folder_.file("step-000008/state.json"));
  fs::remove(file("state.json"));
  EXPECT_FALSE(reader.latest_valid());
}

// A run resumed before some damaged checkpoints does not always write the same steps again. They
// must not take the places of the last ones that it keeps.
TEST_F(CheckpointDamage, WhatIsDamagedIsNotAmongThoseKept) {
  for (int64_t step : {8, 9, 10}) store_.save(example_state(step), step == 9);  // 8 to 10 are kept
  for (const char* step : {"step-000009", "step-000010"}) {
    std::string bytes = read_bytes(folder_.file(step) + "/tensors.safetensors");
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(folder_.file(step) + "/tensors.safetensors", bytes);
  }
  EXPECT_EQ(store_.latest_valid(), folder_.file("step-000008"));
  store_.save(example_state(12), false);
  EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"step-000008", "step-000012"}))
      << "the best was one of those, and the link to it is gone";
  // What its size or its state gives away is seen without reading it all.
  fs::resize_file(folder_.file("step-000008/tensors.safetensors"), 100);
  write_bytes(folder_.file("step-000012/state.json"), "{}");
  write_bytes(folder_.file("step-000013"), "a file, not a checkpoint");
  store_.save(example_state(14), false);
  EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"step-000013", "step-000014"}));
}

TEST_F(CheckpointDamage, OneThatIsWrittenAnewCountsAgain) {
  store_.save(example_state(8), false);
  fs::remove(folder_.file("step-000008/state.json"));
  EXPECT_EQ(store_.latest_valid(), folder_.file("step-000007"));
  store_.save(example_state(8), false);
  store_.save(example_state(9), false);
  EXPECT_EQ(names_in(folder_.path()),
            (std::vector<std::string>{"step-000007", "step-000008", "step-000009"}));
}

// The way a full disk looks from here: a write that stops in the middle of the tensors.
TEST_F(CheckpointDamage, AFailedSaveHarmsNothing) {
  const std::string message = text_of_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10000, 10000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal([&] { store_.save(example_state(8, 5000), false); });
  });
  EXPECT_TRUE(has(message, "step 8 is not saved") && has(message, "File too large")) << message;
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"step-000007"});
  EXPECT_TRUE(same_state(store_.load(*store_.latest_valid()), state_));
  store_.save(example_state(8, 5000), false);
  EXPECT_EQ(store_.latest_valid(), folder_.file("step-000008"));
}

}  // namespace
}  // namespace tessera::checkpoint_damage_test
