// Files that are opened again, parts of files, and a disk that is asked for room first.

#include "tessera/files/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::output_file_test {
namespace {

TEST(OutputFile, IsMadeOnceAndAppendedToLater) {
  const ScratchFolder folder;
  {
    OutputFile file = OutputFile::create(folder / "f");
    file.append("one ");
    file.append("two");
    EXPECT_EQ(file.bytes(), 7u);
  }
  expect_refusal([&] { OutputFile::create(folder / "f"); }, "File exists");
  OutputFile file = OutputFile::append_to(folder / "f");
  file.append(" three");
  file.sync();
  EXPECT_EQ(read_bytes(folder / "f"), "one two three");
}

TEST(OutputFile, MustBeThereToBeOpenedAgain) {
  const ScratchFolder folder;
  expect_refusal([&] { OutputFile::append_to(folder / "f"); }, "No such file or directory");
  expect_refusal([&] { OutputFile::write_into(folder / "f"); }, "No such file or directory");
  EXPECT_TRUE(names_in(folder.path()).empty());
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
  EXPECT_EQ(std::filesystem::file_size(folder / "f"), 0u) << "nothing may be taken before";
  file.reserve(100000);
  EXPECT_EQ(std::filesystem::file_size(folder / "f"), 100000u);
}

}  // namespace
}  // namespace tessera::output_file_test
