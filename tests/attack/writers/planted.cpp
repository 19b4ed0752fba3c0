#include "tests/attack/writers/planted.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/attack/writers/child.h"

namespace tessera::attack {
namespace {

namespace fs = std::filesystem;

void make_pipe(const std::string& path) { EXPECT_EQ(mkfifo(path.c_str(), 0600), 0) << path; }

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << path;
  close(socket);
}

}  // namespace

const char* name_of(Planted planted) {
  static const char* const names[kKindsOfPlanted] = {
      "nothing",      "file", "hard link", "link to a file", "link to nowhere", "link to itself",
      "link to pipe", "pipe", "folder",    "socket",         "device"};
  return names[static_cast<int>(planted)];
}

bool can_be_replaced(Planted planted) { return planted <= Planted::kLinkToFile; }

void plant(Planted planted, const std::string& path, const std::string& others) {
  switch (planted) {
    case Planted::kNothing:
      return;
    case Planted::kFile:
      return write_file(path, "old content");
    case Planted::kHardLink:
      return fs::create_hard_link(others + "/bystander", path);
    case Planted::kLinkToFile:
      return fs::create_symlink(others + "/replaceable", path);
    case Planted::kLinkToNowhere:
      return fs::create_symlink(others + "/nowhere", path);
    case Planted::kLinkToItself:
      return fs::create_symlink(fs::path(path).filename(), path);
    case Planted::kLinkToPipe:
      return fs::create_symlink(others + "/pipe", path);
    case Planted::kPipe:
      return make_pipe(path);
    case Planted::kFolder:
      fs::create_directory(path);
      return write_file(path + "/inside", "of somebody else");
    case Planted::kSocket:
      return make_socket(path);
    case Planted::kDevice:
      if (mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) make_pipe(path);
      return;
  }
}

void make_others(const std::string& others) {
  fs::create_directory(others);
  write_file(others + "/bystander", "never to be changed");
  write_file(others + "/replaceable", "old content");
  make_pipe(others + "/pipe");
}

}  // namespace tessera::attack
