// A file gets its name when it is committed, and a file that is not leaves no trace.

#include "tessera/files/temporary_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

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
  EXPECT_EQ(read_bytes(TemporaryFile::name_for(folder / "f")), "new");
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
  OutputFile guest = OutputFile::write_into(TemporaryFile::name_for(folder / "link"));
  guest.write_at("tail", 4, 6);
  guest.sync();
  temporary.commit();
  EXPECT_EQ(read_bytes(folder / "there/real"), std::string("head\0\0tail", 10));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(TemporaryFile, WithoutAFolderIsRefused) {
  const ScratchFolder folder;
  expect_refusal([&] { TemporaryFile(folder / "none/f"); },
                 "none/f: No such file or directory; check the path");
}

}  // namespace
}  // namespace tessera::temporary_file_test
