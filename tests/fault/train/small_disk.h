#pragma once
// A file system of its own size over a folder, which a test can fill; what the folder held is
// hidden meanwhile. Only root may have one.

#include <cstdint>
#include <string>

namespace tessera {

enum class DiskAccess { kReadWrite, kReadOnly };

class SmallDisk {
 public:
  /// Makes the folder where it is missing.
  SmallDisk(const std::string& folder, int64_t kibibytes,
            DiskAccess access = DiskAccess::kReadWrite);
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk();

  /// Why there is none, as errno; 0 where all is well.
  int error() const { return error_; }
  bool resize(int64_t kibibytes);

 private:
  std::string folder_;
  int error_ = 0;
};

}  // namespace tessera
