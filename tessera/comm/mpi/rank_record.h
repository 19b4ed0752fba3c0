#pragma once
// What a rank leaves behind for the launcher: which process it is, how it failed, its exit code.
// The launcher is not the parent of the ranks (mpirun is), so it cannot ask the system, and
// mpirun's own exit code says little. Each rank appends lines to a file of its own in a folder that
// the launcher names by an environment variable; without that nothing is written.
//
// The three kinds of failure say whose word counts: what the transport itself has found, what a
// rank told the others (its own exception), what was only heard from another rank.
//
// Writing never throws: it happens on the way out.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::mpi {

constexpr const char* kRecordFolderVariable = "TESSERA_RANK_RECORDS";

enum class FailureKind { kFound, kAborted, kHeard };

/// Notes this process; only the first call does.
void record_start() noexcept;
void record_failure(FailureKind kind, const std::string& text) noexcept;
/// Only the first call counts.
void record_exit(int exit_code) noexcept;
/// Returns when all ranks have noted their exit code, at the latest after `limit`.
void await_exits(std::chrono::milliseconds limit) noexcept;

struct RankRecord {
  pid_t pid = 0;  // 0: the rank never got that far
  std::string host;
  struct Failure {
    FailureKind kind = FailureKind::kFound;
    int64_t time_ns = 0;  // of the system's clock
    std::string text;
  };
  std::optional<Failure> failure;  // the first
  std::optional<int> exit_code;
};

std::string this_host();

/// What `rank` has written so far; a line that is not complete yet is left out.
RankRecord read_record(const std::string& folder, int rank);

/// The launcher's folder of records, with an empty one for each rank and room for what it may say,
/// so that a disk that fills up later silences nobody. It goes with the object.
class RecordFolder {
 public:
  /// Throws InvalidInput where the folder for temporary files (TMPDIR) cannot be used.
  explicit RecordFolder(int ranks);
  RecordFolder(const RecordFolder&) = delete;
  RecordFolder& operator=(const RecordFolder&) = delete;
  ~RecordFolder();

  const std::string& path() const { return path_; }
  std::vector<RankRecord> read() const;

 private:
  const int ranks_;
  std::string path_;
};

}  // namespace tessera::mpi
