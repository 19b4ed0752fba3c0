#include "tessera/train/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/train/machine.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  const char* remedy = error == ENOSPC || error == EDQUOT
                           ? "free some space and start again: the run resumes"
                           : "give a folder that can be written with --run";
  throw_error<InvalidInput>("[run folder] cannot {} {}: {}; {}", what, path, std::strerror(error),
                            remedy);
}

/// Closes on every way out. Errors of close itself are seen by the fsync before it.
class File {
 public:
  File(const std::string& path, int flags, const char* what)
      : path_(path), what_(what), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail(path, what, errno);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::string& text) const {
    for (size_t done = 0; done < text.size();) {
      const ssize_t count = ::write(descriptor_, text.data() + done, text.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(path_, what_, errno);
      done += static_cast<size_t>(count);
    }
  }
  void sync() const {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(path_, what_, errno);
  }

 private:
  std::string path_;
  const char* what_;
  int descriptor_;
};

/// The folder's description so far; null where there is none that can be read.
Json read_description(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json();
}

Json describe(const RunDescription& description) {
  const Machine machine = this_machine();
  const Versions built = versions();
  return {
      {"started", utc_time()},
      {"seed", description.seed},
      {"num_ranks", description.num_ranks},
      {"transport", description.transport},
      {"placement", Json::parse(description.placement_json)},
      {"versions",
       {{"tessera", built.tessera}, {"libtorch", built.libtorch}, {"compiler", built.compiler}}},
      {"machine",
       {{"hostname", machine.hostname},
        {"cpu_model", machine.cpu_model},
        {"cores", machine.cores},
        {"memory_bytes", machine.memory_bytes}}},
      {"config", Json::parse(description.config_json)}};
}

}  // namespace

void replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.tmp", path);
  try {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "write");
    file.write(text);
    file.sync();
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(path, "replace", error);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  File(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY, "sync the folder").sync();
}

RunFolder::RunFolder(const std::string& path) : path_(path) {
  if (path.empty())
    throw_error<InvalidInput>("[run folder] the path is empty; give one with --run");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "make the folder", error.value());
  const std::string probe = file(".write_test");
  try {
    File(probe, O_WRONLY | O_CREAT | O_TRUNC, "write").write("\n");
  } catch (...) {
    ::unlink(probe.c_str());
    throw;
  }
  ::unlink(probe.c_str());
}

std::string RunFolder::file(const std::string& name) const {
  return (std::filesystem::path(path_) / name).string();
}

bool RunFolder::holds_run() const {
  std::error_code unreadable;  // counts as absent: writing will say why
  return std::filesystem::exists(file("run.json"), unreadable);
}

void RunFolder::write_description(const RunDescription& description) const {
  Json json = describe(description);
  if (description.resumed_at) {
    Json before = read_description(file("run.json"));
    Json resumed = Json::array();
    if (before.contains("resumed")) resumed = std::move(before["resumed"]);
    if (before.contains("first_start"))
      json["first_start"] = std::move(before["first_start"]);
    else if (before.is_object())
      json["first_start"] = std::move(before);
    resumed.push_back({{"at_step", *description.resumed_at},
                       {"time", json["started"]},
                       {"hostname", json["machine"]["hostname"]},
                       {"placement", json["placement"]}});
    json["resumed"] = std::move(resumed);
  }
  replace_file(file("run.json"), fmt::format("{}\n", json.dump(2)));
}

}  // namespace tessera
