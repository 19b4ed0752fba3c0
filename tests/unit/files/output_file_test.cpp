// Files that are opened again, parts of files, and a disk that is asked for room first.

#include "tessera/files/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::output_file_test {
namespace {

namespace fs = std::filesystem;

TEST(OutputFile, IsMadeOnceAndJoinedLater) {
  const ScratchFolder folder;
  {
    OutputFile file = OutputFile::create(folder / "f");
    file.append("one ");
    file.append("two");
    EXPECT_EQ(file.bytes(), 7u);
  }
  expect_refusal([&] { OutputFile::create(folder / "f"); }, "File exists");
  OutputFile file = OutputFile::join(folder / "f");
  file.write_at("2wo", 3, 4);
  file.sync();
  EXPECT_EQ(read_bytes(folder / "f"), "one 2wo");
}

TEST(OutputFile, MustBeThereToBeJoined) {
  const ScratchFolder folder;
  expect_refusal([&] { OutputFile::join(folder / "f"); }, "No such file or directory");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(OutputFile, IsNotJoinedThroughWhatOthersMayHaveLaidThere) {
  const ScratchFolder folder;
  write_bytes(folder / "bystander", "untouched");
  fs::create_symlink("bystander", folder / "link");
  expect_refusal([&] { OutputFile::join(folder / "link"); }, "[file] cannot open");
  fs::create_hard_link(folder / "bystander", folder / "second name");
  expect_refusal([&] { OutputFile::join(folder / "second name"); }, "with one name");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_refusal([&] { OutputFile::join(folder / "pipe"); }, "[file] cannot open");
  expect_refusal([&] { OutputFile::join("/dev/null"); }, "not a regular file");
}

TEST(OutputFile, ThreadsWriteTheirParts) {
  const ScratchFolder folder;
  OutputFile file = OutputFile::create(folder / "f");
  file.reserve(4000);
  std::vector<std::thread> threads;
  for (int part = 0; part < 4; ++part)
    threads.emplace_back([&file, part] {
      const std::string text(10, static_cast<char>('a' + part));
      for (int64_t row = 0; row < 100; ++row) file.write_at(text.data(), 10, row * 40 + part * 10);
    });
  for (std::thread& thread : threads) thread.join();
  const std::string row = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd";
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += row;
  EXPECT_EQ(read_bytes(folder / "f"), expected);
}

TEST(OutputFile, ReservesWhatTheDiskHas) {
  const ScratchFolder folder;
  OutputFile file = OutputFile::create(folder / "f");
  expect_refusal([&] { file.reserve(int64_t{1} << 60); }, "free; free some space");
  EXPECT_EQ(fs::file_size(folder / "f"), 0u) << "nothing may be taken before";
  file.reserve(100000);
  EXPECT_EQ(fs::file_size(folder / "f"), 100000u);
}

}  // namespace
}  // namespace tessera::output_file_test
