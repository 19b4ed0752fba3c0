#include "tests/fault/train/small_disk.h"

#include <fmt/format.h>
#include <sys/mount.h>

#include <cerrno>
#include <filesystem>

namespace tessera {
namespace {

std::string size_option(int64_t kibibytes) { return fmt::format("size={}k", kibibytes); }

}  // namespace

SmallDisk::SmallDisk(const std::string& folder, int64_t kibibytes, DiskAccess access)
    : folder_(folder) {
  std::filesystem::create_directories(folder);
  const unsigned long flags = access == DiskAccess::kReadOnly ? MS_RDONLY : 0;
  if (mount("tessera", folder.c_str(), "tmpfs", flags, size_option(kibibytes).c_str()) != 0)
    error_ = errno;
}

SmallDisk::~SmallDisk() {
  if (error_ == 0) umount2(folder_.c_str(), MNT_DETACH);
}

bool SmallDisk::resize(int64_t kibibytes) {
  return mount("tessera", folder_.c_str(), "tmpfs", MS_REMOUNT, size_option(kibibytes).c_str()) ==
         0;
}

}  // namespace tessera
