#pragma once
// What the tests of files share: a folder that goes away, whole files as strings, and children that
// try what would change or end the test itself.

#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// An empty folder, removed with all it holds at the end. Memory, where the system has such a
/// folder, is for tests with thousands of files: forcing one to a disk takes milliseconds.
class ScratchFolder {
 public:
  enum class Medium { kDisk, kMemory };
  explicit ScratchFolder(Medium medium = Medium::kDisk);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string operator/(const std::string& name) const { return file(name); }

 private:
  std::string path_;
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);
/// Sorted, hidden ones included.
std::vector<std::string> names_in(const std::string& folder);

bool has(const std::string& text, const std::string& part);

/// Runs `call` in a child process and returns its text. Threads do not survive a fork, so `call`
/// uses only tensors small enough for one thread.
std::string text_of_child(const std::function<std::string()>& call);

}  // namespace tessera
