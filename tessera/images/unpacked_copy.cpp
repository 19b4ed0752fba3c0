#include "tessera/images/unpacked_copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"
#include "tessera/files/temporary_file.h"
#include "tessera/images/gzip_stream.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultCacheLimit = int64_t{32} << 30;
constexpr size_t kUnpackedBytesAtOnce = 1 << 20;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int64_t cache_limit() {
  const std::string text = environment("TESSERA_CACHE_LIMIT");
  return text.empty() ? kDefaultCacheLimit : parse_bytes(text, "TESSERA_CACHE_LIMIT");
}

/// By the rules of XDG, which has relative paths ignored.
std::string cache_folder() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/tessera";
  if (const std::string home = environment("HOME"); home.starts_with('/')) {
    const std::string cache = home + "/.cache";
    if (::access(fs::exists(cache) ? cache.c_str() : home.c_str(), W_OK) == 0)
      return cache + "/tessera";
  }
  std::string temporary = environment("TMPDIR");
  if (!temporary.starts_with('/')) temporary = "/tmp";
  return fmt::format("{}/tessera-{}", temporary, ::geteuid());
}

/// In a folder that all may write to, somebody else could have laid the folder there beforehand.
void make_private_folder(const std::string& folder) {
  make_folder(parent_folder(folder));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw_file_error("make the folder", folder, errno);
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) throw_file_error("look at", folder, errno);
  const bool is_link = S_ISLNK(status.st_mode);
  if (is_link && ::stat(folder.c_str(), &status) != 0) throw_file_error("look at", folder, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    throw_error<InvalidInput>(
        "[file] {} is not a folder of this user; remove it, or set XDG_CACHE_HOME to a folder of "
        "yours",
        folder);
}

uint64_t mixed(std::string_view text, uint64_t hash) {  // FNV-1a
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

/// 128 bits that stand for path, size and times.
std::string name_of_copy(const InputFile& packed) {
  struct stat status {};
  if (::fstat(packed.descriptor(), &status) != 0) throw_file_error("look at", packed.path(), errno);
  std::error_code error;
  const fs::path path = fs::canonical(packed.path(), error);
  const std::string identity = fmt::format(
      "{} {} {}.{:09} {}.{:09}", error ? packed.path() : path.string(), status.st_size,
      status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  return fmt::format("{:016x}{:016x}", mixed(identity, 0xcbf29ce484222325),
                     mixed(identity, 0x9ae16a3b2f90404f));
}

/// Held until it goes away. One of 256 files, which copies share and which stay: a lock that may be
/// removed is none. Where the file system has no locks, two may make the same copy.
class CopyLock {
 public:
  explicit CopyLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (descriptor_ < 0) throw_file_error("create a file for", path, errno);
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  CopyLock(const CopyLock&) = delete;
  CopyLock& operator=(const CopyLock&) = delete;
  ~CopyLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

/// A copy that is there already; its time becomes that of its last use.
std::optional<InputFile> open_copy(const std::string& path, uint64_t bytes,
                                   const std::string& place) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  InputFile copy(path, place);
  if (copy.size() != bytes) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return copy;
}

/// Writes the content, which must have this many bytes.
void unpack(const InputFile& packed, uint64_t bytes, const std::string& place, OutputFile* to) {
  GzipStream stream(packed, place);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kUnpackedBytesAtOnce);
  uint64_t done = 0;
  while (const size_t got = stream.read(buffer.get(), kUnpackedBytesAtOnce)) {
    done += got;
    if (done > bytes) break;
    to->append(buffer.get(), got);
  }
  if (done != bytes)
    throw_error<InvalidInput>(
        "[{}] {}: the header needs {} bytes, the unpacked file has {}{}; it "
        "is truncated or corrupt",
        place, packed.path(), bytes, done > bytes ? "more, at least " : "", done);
}

struct OldCopy {
  fs::file_time_type last_use;
  fs::path path;
  int64_t bytes;
};

/// Removes what was not used for longest, except `kept`.
void stay_within(int64_t limit, const std::string& folder, const std::string& kept) {
  std::error_code error;
  std::vector<OldCopy> copies;
  int64_t total = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(fs::file_size(at->path(), gone));
    if (gone || at->path().filename().string().starts_with('.')) continue;
    total += bytes;
    copies.push_back({at->last_write_time(gone), at->path(), bytes});
  }
  std::ranges::sort(copies, {}, &OldCopy::last_use);
  for (const OldCopy& copy : copies) {
    if (total <= limit) return;
    if (copy.path == kept) continue;
    fs::remove(copy.path, error);
    total -= copy.bytes;
  }
}

InputFile make_copy(const InputFile& packed, uint64_t bytes, const std::string& place) {
  const int64_t limit = cache_limit();
  const std::string folder = cache_folder();
  make_private_folder(folder);
  const std::string name = name_of_copy(packed), path = folder + "/" + name;
  const CopyLock lock(folder + "/.lock-" + name.substr(0, 2));
  if (auto copy = open_copy(path, bytes, place)) return std::move(*copy);
  TemporaryFile temporary(path);
  unpack(packed, bytes, place, &temporary.file());
  temporary.commit();
  stay_within(limit, folder, path);
  return InputFile(path, place);
}

}  // namespace

InputFile open_unpacked(const InputFile& packed, uint64_t expected_bytes,
                        const std::string& place) {
  if (expected_bytes / kMostBytesPerPackedByte > packed.size())
    throw_error<InvalidInput>(
        "[{}] {}: the header needs {} bytes, more than {} packed bytes can hold; it is truncated "
        "or "
        "corrupt",
        place, packed.path(), expected_bytes, packed.size());
  try {
    return make_copy(packed, expected_bytes, place);
  } catch (const InvalidInput& error) {
    if (!std::string_view(error.what()).starts_with("[file]")) throw;
    throw_error<InvalidInput>(
        "[{}] {}: cannot keep its unpacked copy of {}: {}; XDG_CACHE_HOME names another folder",
        place, packed.path(), format_bytes(static_cast<int64_t>(expected_bytes)), error.what());
  }
}

}  // namespace tessera
