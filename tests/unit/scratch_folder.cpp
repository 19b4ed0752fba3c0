#include "tests/unit/scratch_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tessera {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(Medium medium) {
  const bool in_memory = medium == Medium::kMemory && ::access("/dev/shm", W_OK | X_OK) == 0;
  const fs::path root = in_memory ? "/dev/shm" : ::testing::TempDir();
  path_ = (root / "tessera-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  EXPECT_TRUE(file.good()) << path;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of_child(const std::function<std::string()>& call) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = call();
    const bool written = ::write(pipe_ends[1], text.data(), text.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string text(4096, '\0');
  size_t size = 0;
  ssize_t bytes = 0;
  while ((bytes = ::read(pipe_ends[0], text.data() + size, text.size() - size)) > 0) size += bytes;
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with " << status;
  return text.substr(0, size);
}

}  // namespace tessera
