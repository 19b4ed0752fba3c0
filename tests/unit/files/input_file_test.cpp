#include "tessera/files/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/make_socket.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::input_file_test {
namespace {

std::string opening(const std::string& path) {
  const std::string message = refusal([&] { InputFile(path, "--plan"); });
  EXPECT_TRUE(message.starts_with("[--plan] cannot read " + path + ": ")) << message;
  return message;
}

TEST(InputFile, ReadsByPosition) {
  const ScratchFolder folder;
  write_bytes(folder / "f", "0123456789");
  const InputFile file(folder / "f", "--plan");
  EXPECT_EQ(file.size(), 10u);
  std::string part(3, '?');
  file.read_at(7, part.data(), 3);
  EXPECT_EQ(part, "789");
}

// Opening a pipe would wait for its writer for ever, and a device may have no end.
TEST(InputFile, RefusesWhatIsNotARegularFile) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  special::make_socket(folder / "socket");
  EXPECT_TRUE(has(opening(folder / "pipe"), "it is a pipe; write what comes through it"));
  EXPECT_TRUE(has(opening(folder / "socket"), "it is a socket; give a regular file"));
  EXPECT_TRUE(has(opening(folder.path()), "it is a folder; give a regular file"));
  EXPECT_TRUE(has(opening("/dev/zero"), "it is a device; give a regular file"));
}

TEST(InputFile, RefusesWhatCannotBeOpened) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_TRUE(has(opening(folder / "none"), "No such file or directory; check the path"));
  EXPECT_TRUE(has(opening(folder / "loop"), "links lead to each other"));
  EXPECT_TRUE(has(opening(""), "check the path"));
  if (::geteuid() == 0) return;  // root may read everything
  write_bytes(folder / "closed", "x");
  ::chmod((folder / "closed").c_str(), 0);
  EXPECT_TRUE(has(opening(folder / "closed"), "that you may read"));
}

// A mapping would end the process with SIGBUS.
TEST(InputFile, SaysThatAFileHasShrunk) {
  const ScratchFolder folder;
  write_bytes(folder / "f", std::string(10'000, 'x'));
  const InputFile file(folder / "f", "npy");
  std::filesystem::resize_file(folder / "f", 5'000);
  std::string bytes(10'000, '\0');
  file.read_at(0, bytes.data(), 5'000);
  expect_refusal([&] { file.read_at(0, bytes.data(), 5'001); },
                 "[npy] " + (folder / "f") +
                     " is shorter than it was: it had 10000 bytes when it was opened and ends "
                     "before byte 5001 now");
}

}  // namespace
}  // namespace tessera::input_file_test
