#include "tessera/comm/mpi/rank_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "tessera/comm/mpi/environment.h"

namespace tessera::mpi {
namespace {

constexpr const char* kKindNames[] = {"found", "aborted", "heard"};

std::string record_path(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}", folder, rank);
}

/// One write: a rank that is killed leaves whole lines or none.
void append(std::string line) noexcept {
  const char* folder = std::getenv(kRecordFolderVariable);
  const int rank = launched_rank();
  if (!folder || rank < 0) return;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  const int file =
      open(record_path(folder, rank).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

void parse(const std::string& line, RankRecord& record) {
  std::istringstream words(line);
  std::string key;
  words >> key;
  if (key == "pid") {
    words >> record.pid >> record.host;
  } else if (key == "exit") {
    int code = 0;
    if (words >> code) record.exit_code = code;
  } else if (key == "failure" && !record.failure) {
    RankRecord::Failure failure;
    std::string kind;
    words >> kind >> failure.time_ns >> std::ws;
    std::getline(words, failure.text);
    failure.kind = kind == kKindNames[0]   ? FailureKind::kFound
                   : kind == kKindNames[1] ? FailureKind::kAborted
                                           : FailureKind::kHeard;
    record.failure = failure;
  }
}

}  // namespace

std::string this_host() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

void record_start() noexcept { append(fmt::format("pid {} {}", getpid(), this_host())); }

void record_failure(FailureKind kind, const std::string& text) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  append(fmt::format("failure {} {} {}", kKindNames[static_cast<int>(kind)],
                     std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), text));
}

void record_exit(int exit_code) noexcept { append(fmt::format("exit {}", exit_code)); }

void await_exits(std::chrono::milliseconds limit) noexcept {
  const char* folder = std::getenv(kRecordFolderVariable);
  if (!folder) return;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int rank = 0; rank < launched_size().value_or(0); ++rank)
    while (!read_record(folder, rank).exit_code && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

RankRecord read_record(const std::string& folder, int rank) {
  RankRecord record;
  std::ifstream file(record_path(folder, rank));
  std::string line;
  while (std::getline(file, line) && !file.eof()) parse(line, record);
  return record;
}

}  // namespace tessera::mpi
