#include "tessera/files/folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::folder_test {
namespace {

TEST(Folder, IsMadeWithItsParentsAndMayBeThere) {
  const ScratchFolder folder;
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  write_bytes(folder / "a/b/c/f", "x");
  make_folder(folder / "a/b/c");
  EXPECT_EQ(read_bytes(folder / "a/b/c/f"), "x");
}

TEST(Folder, CannotTakeTheNameOfAFile) {
  const ScratchFolder folder;
  write_bytes(folder / "f", "x");
  for (const char* name : {"f", "f/below"})
    expect_refusal([&] { make_folder(folder / name); }, "Not a directory; check the path");
  EXPECT_EQ(read_bytes(folder / "f"), "x");
}

TEST(Folder, OfAPath) {
  EXPECT_EQ(parent_folder("a/b/c"), "a/b");
  EXPECT_EQ(parent_folder("/f"), "/");
  EXPECT_EQ(parent_folder("f"), ".");
}

TEST(Folder, RenamesBetweenFolders) {
  const ScratchFolder folder;
  make_folder(folder / "a");
  make_folder(folder / "b");
  write_bytes(folder / "a/f", "new");
  write_bytes(folder / "b/g", "old");
  rename_durably(folder / "a/f", folder / "b/g");
  EXPECT_EQ(read_bytes(folder / "b/g"), "new");
  EXPECT_TRUE(names_in(folder / "a").empty());
  expect_refusal([&] { rename_durably(folder / "a/f", folder / "b/h"); }, "b/h: No such file");
}

}  // namespace
}  // namespace tessera::folder_test
