// A file gets its name when it is committed, and a file that is not leaves no trace.

#include "tessera/files/temporary_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::temporary_file_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(TemporaryFile, TakesItsNameWhenItIsCommitted) {
  const ScratchFolder folder;
  write_bytes(folder / "f", "old");
  TemporaryFile temporary(folder / "f");
  temporary.file().append("new");
  EXPECT_EQ(read_bytes(folder / "f"), "old");
  EXPECT_EQ(read_bytes(temporary.name()), "new");
  temporary.commit();
  EXPECT_EQ(read_bytes(folder / "f"), "new");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(TemporaryFile, IsGoneWhenItIsNotCommitted) {
  const ScratchFolder folder;
  write_bytes(folder / "f", "old");
  TemporaryFile(folder / "f").file().append("new");
  EXPECT_EQ(read_bytes(folder / "f"), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(TemporaryFile, LeavesTheNextWriterAlone) {
  const ScratchFolder folder;
  std::optional<TemporaryFile> first(std::in_place, folder / "f");
  first->file().append("first");
  first->commit();
  TemporaryFile second(folder / "f");  // the name is free, though the first is still open
  second.file().append("second");
  first.reset();
  second.commit();
  EXPECT_EQ(read_bytes(folder / "f"), "second");
}

TEST(TemporaryFile, OthersWriteInItByItsName) {
  const ScratchFolder folder;
  fs::create_directory(folder / "there");
  write_bytes(folder / "there/real", "old");
  fs::create_symlink("there/real", folder / "link");
  TemporaryFile temporary(folder / "link");
  temporary.file().reserve(10);
  temporary.file().write_at("head", 4, 0);
  OutputFile guest = OutputFile::join(temporary.name());
  guest.write_at("tail", 4, 6);
  guest.sync();
  temporary.commit();
  EXPECT_EQ(read_bytes(folder / "there/real"), std::string("head\0\0tail", 10));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(TemporaryFile, HasANameThatNobodyCanGuess) {
  const ScratchFolder folder;
  const std::string first = TemporaryFile(folder / "f").name();
  EXPECT_NE(TemporaryFile(folder / "f").name(), first);
}

TEST(TemporaryFile, RemovesTheLeftoverOfAKilledWriterOfThatNameOnly) {
  const ScratchFolder folder;
  write_bytes(folder / ".f.0123456789abcdef.writing", "left by a killed writer");
  const Names others{".f.0123456789ABCDEF.writing", ".f.0123456789abcde.writing",
                     ".f.g.0123456789abcdef.writing", ".g.0123456789abcdef.writing", "f"};
  for (const std::string& name : others) write_bytes(folder / name, "another's");
  TemporaryFile(folder / "f").commit();
  EXPECT_EQ(names_in(folder.path()), others);
}

// Whoever may write to the folder may lay anything there under a name that looks like ours.
TEST(TemporaryFile, LeavesWhatOthersHaveLaidThereAlone) {
  const ScratchFolder folder;
  write_bytes(folder / "bystander", "untouched");
  fs::create_symlink("bystander", folder / ".f.0000000000000001.writing");
  fs::create_hard_link(folder / "bystander", folder / ".f.0000000000000002.writing");
  ASSERT_EQ(::mkfifo((folder / ".f.0000000000000003.writing").c_str(), 0600), 0);
  fs::create_directory(folder / ".f.0000000000000004.writing");
  fs::create_symlink("bystander", folder / ".f.writing");
  Names before = names_in(folder.path());
  TemporaryFile temporary(folder / "f");
  temporary.file().append("new");
  temporary.commit();
  EXPECT_EQ(read_bytes(folder / "bystander"), "untouched");
  before.push_back("f");
  EXPECT_EQ(names_in(folder.path()), before);
  EXPECT_EQ(read_bytes(folder / "f"), "new");
}

TEST(TemporaryFile, IsRefusedWhereAnotherWriterLivesAndTakesNothingFromIt) {
  const ScratchFolder folder;
  TemporaryFile first(folder / "f");
  expect_refusal([&] { TemporaryFile(folder / "f"); }, "another process is writing it");
  first.file().append("first");
  first.commit();
  EXPECT_EQ(read_bytes(folder / "f"), "first");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(TemporaryFile, OfWritersThatBeginAtOnceNoneMixesWithAnother) {
  const ScratchFolder folder;
  std::atomic<int> num_written{0};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> writers;
    for (char letter : {'a', 'b', 'c'})
      writers.emplace_back([&, letter] {
        try {
          TemporaryFile temporary(folder / "f");
          temporary.file().append(std::string(5000, letter));
          temporary.commit();
          ++num_written;
        } catch (const InvalidInput& error) {
          EXPECT_TRUE(has(error.what(), "another process is writing it")) << error.what();
        }
      });
    for (std::thread& writer : writers) writer.join();
    const std::string content = read_bytes(folder / "f");
    EXPECT_EQ(content, std::string(5000, content.at(0)));
    EXPECT_EQ(names_in(folder.path()), Names{"f"});
  }
  EXPECT_GE(num_written, 20) << "in every round one should come through";
}

TEST(TemporaryFile, ReplacesNothingThatIsNotAFileWhenItIsCommitted) {
  const ScratchFolder folder;
  const auto commit_over = [&](const std::function<void()>& lay) {
    TemporaryFile temporary(folder / "f");
    lay();
    return refusal([&] { temporary.commit(); });
  };
  const auto pipe = [&] { ASSERT_EQ(::mkfifo((folder / "f").c_str(), 0600), 0); };
  EXPECT_TRUE(has(commit_over(pipe), "it is not a regular file"));
  EXPECT_TRUE(fs::is_fifo(folder / "f"));
  fs::remove(folder / "f");
  write_bytes(folder / "bystander", "untouched");
  const auto link = [&] { fs::create_symlink("bystander", folder / "f"); };
  EXPECT_TRUE(has(commit_over(link), "it is not a regular file"));
  EXPECT_EQ(read_bytes(folder / "f"), "untouched");
  EXPECT_TRUE(fs::is_symlink(folder / "f"));
}

TEST(TemporaryFile, ThatWasExchangedMeanwhileIsNotCommitted) {
  const ScratchFolder folder;
  TemporaryFile temporary(folder / "f");
  fs::remove(temporary.name());
  write_bytes(temporary.name(), "somebody else's");
  expect_refusal([&] { temporary.commit(); }, "was removed or replaced meanwhile");
  EXPECT_FALSE(fs::exists(folder / "f"));
}

TEST(TemporaryFile, WithoutAFolderIsRefused) {
  const ScratchFolder folder;
  expect_refusal([&] { TemporaryFile(folder / "none/f"); },
                 "none/f: No such file or directory; check the path");
  expect_refusal([&] { TemporaryFile(folder / std::string(250, 'n')); }, "give a shorter name");
}

}  // namespace
}  // namespace tessera::temporary_file_test
