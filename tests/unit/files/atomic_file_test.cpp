#include "tessera/files/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::atomic_file_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(AtomicFile, ReplacesWhole) {
  const ScratchFolder folder;
  const std::string path = folder.file("f");
  write_file_atomically(path, "a long first content");
  write_file_atomically(path, "short");
  EXPECT_EQ(read_bytes(path), "short");
  write_file_atomically(path, "");
  EXPECT_EQ(read_bytes(path), "");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(AtomicFile, WorksWithoutAFolderInTheName) {
  const ScratchFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("f", "here");
  fs::current_path(before);
  EXPECT_EQ(read_bytes(folder.file("f")), "here");
}

TEST(AtomicFile, HasThePermissionsOfAnyNewFile) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("f"), "x");
  write_bytes(folder.file("plain"), "x");
  EXPECT_EQ(fs::status(folder.file("f")).permissions(),
            fs::status(folder.file("plain")).permissions());
}

TEST(AtomicFile, FailureLeavesTheOldContentAndNothingElse) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("f"), "old");
  const auto fill = [](OutputFile& file) {
    file.append("half of it");
    throw std::logic_error("stop");
  };
  EXPECT_THROW(write_file_atomically(folder.file("f"), fill), std::logic_error);
  EXPECT_EQ(read_bytes(folder.file("f")), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(AtomicFile, ALeftoverOfAKilledWriterIsRemoved) {
  const ScratchFolder folder;
  write_bytes(folder.file(".f.0123456789abcdef.writing"), "much longer than what is to come");
  write_file_atomically(folder.file("f"), "new");
  EXPECT_EQ(read_bytes(folder.file("f")), "new");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(AtomicFile, ASecondWriterIsRefused) {
  const ScratchFolder folder;
  const auto second = [&](OutputFile& file) {
    file.append("first");
    EXPECT_TRUE(has(refusal([&] { write_file_atomically(folder.file("f"), "second"); }),
                    "another process is writing"));
  };
  write_file_atomically(folder.file("f"), second);
  EXPECT_EQ(read_bytes(folder.file("f")), "first");
}

TEST(AtomicFile, WritesWhereALinkLeads) {
  const ScratchFolder folder;
  fs::create_directory(folder.file("there"));
  write_file_atomically(folder.file("there/real"), "old");
  fs::create_symlink("there/real", folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(read_bytes(folder.file("there/real")), "new");
  fs::create_symlink("nowhere", folder.file("dangling"));
  EXPECT_TRUE(
      has(refusal([&] { write_file_atomically(folder.file("dangling"), "x"); }), "nowhere"));
}

TEST(AtomicFile, RefusesWhatIsNoPlaceForAFile) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("f"), "x");
  const auto write = [](const std::string& path) {
    const std::string message = refusal([&] { write_file_atomically(path, "x"); });
    EXPECT_TRUE(has(message, path)) << message;
    return message;
  };
  EXPECT_TRUE(has(write(folder.file("f/below")), "Not a directory"));
  EXPECT_TRUE(has(write(folder.file("none/f")), "No such file or directory; check the path"));
  EXPECT_TRUE(has(write(folder.path()), "is a folder"));
  EXPECT_TRUE(has(write("/dev/full"), "not a regular file"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(AtomicFile, SaysThatTheDeviceIsFull) {
  OutputFile file(::open("/dev/full", O_WRONLY | O_CLOEXEC), "weights");
  const std::string message = refusal([&] { file.append("x"); });
  EXPECT_TRUE(has(message, "write to weights: No space left on device; free some space"))
      << message;
}

// A limit on the size of files stops a write in its middle, as a full disk does.
TEST(AtomicFile, AWriteThatStopsInTheMiddleChangesNothing) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("f"), "old");
  const std::string message = text_of_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10000, 10000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal([&] { write_file_atomically(folder.file("f"), std::string(1 << 20, 'x')); });
  });
  EXPECT_TRUE(has(message, "File too large")) << message;
  EXPECT_EQ(read_bytes(folder.file("f")), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

// In a name space of its own, which takes the small disk along when the child ends.
TEST(AtomicFile, AFullDiskChangesNothing) {
  const ScratchFolder folder;
  const std::string message = text_of_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
      return "may not mount";
    write_file_atomically(folder.file("f"), "old");
    const std::string text =
        refusal([&] { write_file_atomically(folder.file("f"), std::string(1 << 20, 'x')); });
    const bool unchanged =
        read_bytes(folder.file("f")) == "old" && names_in(folder.path()).size() == 1;
    return text + (unchanged ? " unchanged" : " changed");
  });
  if (message == "may not mount") GTEST_SKIP() << "mounting a small disk is not allowed here";
  EXPECT_TRUE(has(message, "No space left on device; free some space")) << message;
  EXPECT_TRUE(has(message, " unchanged")) << message;
}

TEST(AtomicFile, AFolderWithoutPermissionIsNamed) {
  const ScratchFolder folder;
  fs::create_directory(folder.file("closed"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.file("closed").c_str(), 0555), 0);
  const std::string message = text_of_child([&]() -> std::string {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return "cannot become another user";
    return refusal([&] { write_file_atomically(folder.file("closed/f"), "x"); });
  });
  EXPECT_TRUE(has(message, "Permission denied; choose a folder")) << message;
}

}  // namespace
}  // namespace tessera::atomic_file_test
