#include "tests/fault/mpi/job.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tessera/comm/mpi/mpi.h"

namespace tessera {
namespace {

/// While it lives, what this process and its children write to stderr goes to a file.
class CapturedErrors {
 public:
  CapturedErrors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~CapturedErrors() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  std::string text() {
    std::fflush(stderr);
    std::string all;
    char buffer[4096];
    std::rewind(file_);
    while (const size_t count = std::fread(buffer, 1, sizeof(buffer), file_))
      all.append(buffer, count);
    return all;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace

JobResult play(int ranks, const std::string& scenario, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string(),
                                   scenario};
  command.insert(command.end(), arguments.begin(), arguments.end());
  CapturedErrors errors;
  JobResult result;
  result.exit_code = mpi::launch(ranks, command);
  result.errors = errors.text();
  return result;
}

void mark_running(const std::string& folder, int rank) {
  std::ofstream(folder + "/running-" + std::to_string(rank));
}

void await_running(const std::string& folder, int ranks) {
  for (int rank = 0; rank < ranks; ++rank)
    while (!std::filesystem::exists(folder + "/running-" + std::to_string(rank)))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace tessera
