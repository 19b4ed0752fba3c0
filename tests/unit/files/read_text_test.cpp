#include "tessera/files/read_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::read_text_test {
namespace {

TEST(ReadText, GivesEveryByte) {
  const ScratchFolder folder;
  const std::string odd("a\r\n\0b\xff\n", 7);
  for (const std::string& text : {std::string(), odd, std::string(100'000, 'x')}) {
    write_bytes(folder / "f", text);
    EXPECT_EQ(read_text(folder / "f", "--plan"), text);
  }
}

// As the shell's <(command) gives one.
TEST(ReadText, ReadsAPipe) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_bytes(folder / "pipe", "through a pipe"); });
  EXPECT_EQ(read_text(folder / "pipe", "--plan"), "through a pipe");
  writer.join();
}

TEST(ReadText, RefusesWhatCannotBeRead) {
  const ScratchFolder folder;
  expect_refusal([&] { read_text(folder / "none", "--plan"); }, "[--plan] cannot read ");
  expect_refusal([&] { read_text(folder / "none", "--plan"); }, "none: No such file or directory;");
  expect_refusal([&] { read_text(folder.path(), "--plan"); }, "Is a directory;");
}

}  // namespace
}  // namespace tessera::read_text_test
