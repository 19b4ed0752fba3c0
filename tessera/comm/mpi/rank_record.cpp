#include "tessera/comm/mpi/rank_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/environment.h"
#include "tessera/files/output_file.h"

namespace tessera::mpi {
namespace {

constexpr size_t kMostLineBytes = 4096;
constexpr const char* kKindNames[] = {"found", "aborted", "heard"};

std::string record_path(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}", folder, rank);
}

/// As the launcher counts, even where MPI then sees another world.
const std::optional<LaunchedPlace>& place_at_launch() {
  static const std::optional<LaunchedPlace> place = launched_place();
  return place;
}

/// One write: a rank that is killed leaves whole lines or none.
void append(std::string line) noexcept try {
  const char* folder = std::getenv(kRecordFolderVariable);
  const auto& place = place_at_launch();
  if (!folder || !place) return;
  line.resize(std::min(line.size(), kMostLineBytes));
  std::replace(line.begin(), line.end(), '\n', ' ');
  OutputFile::append_to(record_path(folder, place->rank)).append(line + '\n');
} catch (...) {  // the launcher then says that this rank has not said anything
}

/// For all that a rank may say: its start, a failure, its exit.
void make_record(const std::string& path) {
  const OutputFile file = OutputFile::create(path);
  if (fallocate(file.descriptor(), FALLOC_FL_KEEP_SIZE, 0, 4 * kMostLineBytes) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return;
  throw_error<InvalidInput>(
      "[launch] cannot keep room for {}: {}; free some space there, or set "
      "TMPDIR to a folder that has some",
      path, std::strerror(errno));
}

void remove(const std::string& folder) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

/// Not temp_directory_path(): its error names neither the variable nor the folder.
std::string temporary_folder() {
  const char* variable = std::getenv("TMPDIR");
  return variable && *variable ? variable : "/tmp";
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

void record_start() noexcept {
  static std::atomic<bool> recorded{false};
  if (!recorded.exchange(true)) append(fmt::format("pid {} {}", getpid(), this_host()));
}

void record_failure(FailureKind kind, const std::string& text) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  append(fmt::format("failure {} {} {}", kKindNames[static_cast<int>(kind)],
                     std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), text));
}

void record_exit(int exit_code) noexcept {
  static std::atomic<bool> recorded{false};
  if (!recorded.exchange(true)) append(fmt::format("exit {}", exit_code));
}

void await_exits(std::chrono::milliseconds limit) noexcept {
  const char* folder = std::getenv(kRecordFolderVariable);
  const auto& place = place_at_launch();
  if (!folder || !place) return;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int rank = 0; rank < place->size; ++rank)
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

RecordFolder::RecordFolder(int ranks) : ranks_(ranks) {
  path_ = temporary_folder() + "/tessera-ranks-XXXXXX";
  if (!mkdtemp(path_.data()))
    throw_error<InvalidInput>(
        "[launch] cannot make a folder in {}: {}; set TMPDIR to a folder that can be written, or "
        "unset it",
        temporary_folder(), std::strerror(errno));
  try {
    for (int rank = 0; rank < ranks; ++rank) make_record(record_path(path_, rank));
  } catch (...) {
    remove(path_);
    throw;
  }
}

RecordFolder::~RecordFolder() { remove(path_); }

std::vector<RankRecord> RecordFolder::read() const {
  std::vector<RankRecord> records;
  for (int rank = 0; rank < ranks_; ++rank) records.push_back(read_record(path_, rank));
  return records;
}

}  // namespace tessera::mpi
