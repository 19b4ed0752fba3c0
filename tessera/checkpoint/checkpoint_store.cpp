#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/checkpoint/best_link.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void print_warning(const std::string& text) { print_error("warning: {}\n", text); }

// The lock lies on the folder itself, so there is no lock file to be left behind. Where a file
// system has no locks, the user is trusted to give each run its own folder.
int lock_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("open the folder", folder, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    throw_error<InvalidInput>(
        "[checkpoint] another run is writing to {}; wait for it or choose another folder", folder);
  }
  return descriptor;
}

// The lock stays with the folder that was locked. One that has taken its place may be another
// run's.
void check_still_there(const std::string& folder, int descriptor, int64_t step) {
  struct stat named, locked;
  if (::stat(folder.c_str(), &named) == 0 && ::fstat(descriptor, &locked) == 0 &&
      named.st_dev == locked.st_dev && named.st_ino == locked.st_ino)
    return;
  throw_error<InvalidInput>(
      "[checkpoint] step {} is not saved: {} was removed or replaced while this run had it; put it "
      "back and start the run again",
      step, folder);
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, int keep_last, Warn warn)
    : folder_(std::move(folder)),
      keep_last_(keep_last),
      warn_(warn ? std::move(warn) : Warn(print_warning)) {
  if (folder_.empty()) throw_error<InvalidInput>("[checkpoint] the folder has no name");
  if (keep_last < 1)
    throw_error<InvalidInput>("[checkpoint] {} checkpoints to keep; keep at least 1", keep_last);
}

CheckpointStore::~CheckpointStore() {
  if (claim_ >= 0) ::close(claim_);
}

void CheckpointStore::claim() {
  if (claim_ >= 0) return;
  make_folder(folder_);
  claim_ = lock_folder(folder_);
  remove_leftovers(folder_);
  finish_replacements();
  link_best(newest_best());
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) throw_file_error("write to", folder_, errno);
}

std::string CheckpointStore::save(const TrainingState& state, bool is_best) {
  TESSERA_CHECK(state.step >= 0, "step {}", state.step);
  claim();
  check_still_there(folder_, claim_, state.step);
  CheckpointName name{state.step, 0};
  for (const CheckpointName& known : scan_checkpoints(folder_))
    if (known.step == name.step) name.revision = std::max(name.revision, known.revision + 1);
  const std::string temporary = writing_path(folder_, name);
  std::error_code ignored;
  try {
    write_checkpoint_folder(temporary, state, is_best);
    rename_durably(temporary, path_of(name));
  } catch (const InvalidInput& error) {
    fs::remove_all(temporary, ignored);
    throw_error<InvalidInput>("[checkpoint] step {} is not saved: {}", state.step, error.what());
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
  name = replace_same_step(name);
  damaged_.erase(name);
  const std::optional<CheckpointName> best = is_best ? name : known_best(name);
  link_best(best);
  prune(name, best);
  return path_of(name);
}

std::optional<CheckpointName> CheckpointStore::newest_best() const {
  for (const CheckpointName& name : scan_checkpoints(folder_))
    if (is_best(name)) return name;
  return std::nullopt;
}

// By the link. A folder that has none yet, or one that leads astray, is searched; and one that
// leads to a higher step, which a run that went back has abandoned, stays only while the run has no
// best of its own.
std::optional<CheckpointName> CheckpointStore::known_best(const CheckpointName& newest) const {
  const auto is_best_of_use = [&](const CheckpointName& name) {
    return !damaged_.contains(name) && is_best(name);
  };
  std::optional<CheckpointName> linked = read_best_link(folder_);
  if (linked && !is_best_of_use(*linked)) linked.reset();
  if (linked && *linked <= newest) return linked;
  for (const CheckpointName& name : scan_checkpoints(folder_))
    if (name <= newest && is_best_of_use(name)) return name;
  return linked;
}

// The link is a convenience: a file system without links is not a reason to lose a run.
void CheckpointStore::link_best(const std::optional<CheckpointName>& best) {
  if (read_best_link(folder_) == best) return;
  try {
    if (best)
      write_best_link(folder_, *best);
    else
      remove_best_link(folder_);
  } catch (const InvalidInput& error) {
    warn_(fmt::format("there is no link to the best checkpoint, {}: {}", path_of(*best),
                      error.what()));
  }
}

// A folder cannot be renamed over another. So the new one is there under a name of its own before
// the old one goes, and takes the plain name last; readers take the higher revision meanwhile.
CheckpointName CheckpointStore::replace_same_step(const CheckpointName& saved) {
  const CheckpointName plain{saved.step, 0};
  if (saved == plain) return saved;
  for (const CheckpointName& name : scan_checkpoints(folder_))
    if (name.step == saved.step && name != saved) discard(name);
  std::error_code error;
  if (fs::exists(fs::symlink_status(path_of(plain), error))) return saved;  // not ours to remove
  try {
    rename_durably(path_of(saved), path_of(plain));
    return plain;
  } catch (const InvalidInput& fault) {
    warn_(fmt::format("[checkpoint] {} keeps its name: {}", path_of(saved), fault.what()));
    return saved;
  }
}

// A killed run may have stopped between the renames. Only a whole checkpoint may displace another.
void CheckpointStore::finish_replacements() {
  int64_t settled_step = -1;
  for (const CheckpointName& name : scan_checkpoints(folder_)) {  // the newest revision comes first
    if (name.revision == 0 || name.step == settled_step) continue;
    if (!is_whole(name)) continue;
    replace_same_step(name);
    settled_step = name.step;
  }
}

void CheckpointStore::prune(const CheckpointName& saved,
                            const std::optional<CheckpointName>& best) {
  int kept = 0;
  for (const CheckpointName& name : scan_checkpoints(folder_)) {
    if (name > saved) continue;
    const bool is_of_use = !damaged_.contains(name) && state_of(name);
    if (is_of_use) ++kept;
    if (!is_of_use || (kept > keep_last_ && name != best)) discard(name);
  }
}

std::optional<StateFile> CheckpointStore::state_of(const CheckpointName& name) const {
  try {
    return read_state_file(path_of(name));
  } catch (const InvalidInput&) {
    return std::nullopt;  // damaged or foreign: reported by whoever wants to read it
  }
}

bool CheckpointStore::is_best(const CheckpointName& name) const {
  const std::optional<StateFile> state = state_of(name);
  return state && state->is_best;
}

// Failing to remove does not harm the run, so it is not an error. A folder that holds more than a
// checkpoint is somebody else's and stays.
void CheckpointStore::discard(const CheckpointName& name) {
  const std::string path = path_of(name);
  if (!holds_only_checkpoint_files(path)) return;
  const std::string temporary = removing_path(folder_, name);
  try {
    remove_all(temporary);
    if (::rename(path.c_str(), temporary.c_str()) != 0) throw_file_error("remove", path, errno);
    remove_all(temporary);
  } catch (const InvalidInput& error) {
    warn_(fmt::format("[checkpoint] an old one stays: {}", error.what()));
  }
}

bool CheckpointStore::is_whole(const CheckpointName& name) {
  try {
    check_checkpoint_folder(path_of(name));
    damaged_.erase(name);
    return true;
  } catch (const InvalidInput& error) {
    damaged_.insert(name);
    warn_(fmt::format("{}; it is passed over", error.what()));
    return false;
  }
}

std::optional<std::string> CheckpointStore::latest_valid() {
  for (const CheckpointName& name : scan_checkpoints(folder_))
    if (is_whole(name)) return path_of(name);
  return std::nullopt;
}

std::optional<std::string> CheckpointStore::best() {
  const std::optional<CheckpointName> linked = read_best_link(folder_);
  if (linked && is_best(*linked) && is_whole(*linked)) return path_of(*linked);
  for (const CheckpointName& name : scan_checkpoints(folder_))
    if (name != linked && is_best(name) && is_whole(name)) return path_of(name);
  return std::nullopt;
}

TrainingState CheckpointStore::load(const std::string& path) const {
  return load_checkpoint_folder(path);
}

std::string CheckpointStore::path_of(const CheckpointName& name) const {
  return (fs::path(folder_) / to_string(name)).string();
}

}  // namespace tessera
