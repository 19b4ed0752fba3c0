// Writers that meet, that are killed, and that find no room: every output is whole, old or new.

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/attack/writers/amount.h"
#include "tests/attack/writers/job.h"
#include "tests/attack/writers/snapshot.h"

namespace tessera::concurrent_test {
namespace {

namespace fs = std::filesystem;
using namespace attack;

std::vector<std::string> leftovers(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : snapshot(folder))
    if (name.find("writing") != std::string::npos) names.push_back(name);
  return names;
}

void expect_undisturbed(const Job& job, const std::string& folder) {
  for (const Output& output : job.outputs)
    if (output.repeatable) {
      EXPECT_TRUE(read_file(folder + "/" + output.name) == undisturbed(job).at(output.name))
          << output.name << " is not what one writer alone leaves";
    }
}

TEST(Writers, OfOneOutputDoNotMix) {
  const Job predict = job("predict");
  undisturbed(predict);
  for_each_case(2, [&](uint64_t seed) {
    const Folder folder, logs;
    prepare_inputs(folder.path());
    Child first(predict.words, folder.path(), logs / "first");
    std::this_thread::sleep_for(std::chrono::milliseconds(seed * 7919 % 100));
    Child second(predict.words, folder.path(), logs / "second");
    const int codes[] = {first.exit_code(), second.exit_code()};
    EXPECT_TRUE(codes[0] == 0 || codes[1] == 0) << first.errors() << second.errors();
    for (Child* child : {&first, &second})
      if (child->exit_code() != 0) {
        EXPECT_EQ(child->exit_code(), 2);
        EXPECT_NE(child->errors().find("another process is writing it"), std::string::npos)
            << child->errors();
      }
    expect_undisturbed(predict, folder.path());
    EXPECT_EQ(leftovers(folder.path()), std::vector<std::string>{});
  });
}

TEST(Writers, ThatAreKilledLeaveTheOldFileOrTheNewOne) {
  for_each_case(3, [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    const Job& job = jobs()[random() % jobs().size()];
    const std::map<std::string, std::string>& wanted = undisturbed(job);
    const Folder folder, logs;
    prepare_inputs(folder.path());
    for (const Output& output : job.outputs) {
      fs::create_directories(fs::path(folder / output.name).parent_path());
      write_file(folder / output.name, "old content");
    }
    {
      Child child(job.words, folder.path(), logs / "log");
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 800));
      child.kill_now();
    }
    for (const Output& output : job.outputs) {
      const std::string content = read_file(folder / output.name);
      if (output.repeatable) {
        EXPECT_TRUE(content == "old content" || content == wanted.at(output.name)) << output.name;
      }
    }
    const Ending again = run(job.words, folder.path());
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_undisturbed(job, folder.path());
    EXPECT_EQ(leftovers(folder.path()), std::vector<std::string>{});
  });
}

TEST(Writers, OnAFullDiskChangeNothing) {
  for (const char* command : {"predict", "verify", "inspect", "train"}) {
    SCOPED_TRACE(command);
    const Folder folder;
    // A page for each old file, and one more.
    const std::string size = "size=" + std::to_string(4 * (job(command).outputs.size() + 1)) + "k";
    if (mount("tessera", folder.path().c_str(), "tmpfs", 0, size.c_str()) != 0)
      GTEST_SKIP() << "may not mount: " << std::strerror(errno);
    const Folder inputs;
    prepare_inputs(inputs.path());
    const Job full = job(command);
    Words words = full.words;
    const auto weights = std::find(words.begin(), words.end(), "weights.safetensors");
    if (weights != words.end()) *weights = inputs / "weights.safetensors";
    for (const Output& output : full.outputs) {
      fs::create_directories(fs::path(folder / output.name).parent_path());
      write_file(folder / output.name, "old content");
      EXPECT_EQ(read_file(folder / output.name), "old content") << "the disk is too small";
    }
    const Ending ending = run(words, folder.path());
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_NE(ending.err.find("free some space"), std::string::npos) << ending.err;
    for (const Output& output : full.outputs)
      if (output.repeatable) {
        const std::string content = read_file(folder / output.name);
        EXPECT_TRUE(content == "old content" || content == undisturbed(full).at(output.name));
      }
    EXPECT_EQ(leftovers(folder.path()), std::vector<std::string>{});
    umount2(folder.path().c_str(), MNT_DETACH);
  }
}

// Rank 0 alone finds out; the others must not take it for lost.
TEST(Writers, AnOutputThatRankZeroCannotWriteIsBadInputUnderMpiToo) {
  if (!mpirun_is_installed()) GTEST_SKIP() << "mpirun is not installed";
  const Folder folder;
  prepare_inputs(folder.path());
  std::filesystem::create_symlink("/dev/null", folder / "null.npy");
  for (const char* output : {"nowhere/classes.npy", "null.npy"}) {
    Words words = job("predict").words;
    *std::find(words.begin(), words.end(), "classes.npy") = output;
    words.insert(words.end(), {"--launch", "mpi"});
    const Ending ending = run(words, folder.path());
    EXPECT_EQ(ending.exit_code, 2) << ending.err;
    EXPECT_NE(ending.err.find(output), std::string::npos) << ending.err;
  }
  Words words = job("predict").words;
  words.insert(words.end(), {"--launch", "mpi"});
  EXPECT_EQ(run(words, folder.path()).exit_code, 0);
  expect_undisturbed(job("predict"), folder.path());
}

}  // namespace
}  // namespace tessera::concurrent_test
