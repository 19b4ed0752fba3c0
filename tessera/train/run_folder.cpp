#include "tessera/train/run_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/atomic_file.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/train/machine.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

/// The folder's description so far; empty where there is none, or what is there is not one.
Json read_description(const std::string& path) {
  std::error_code unreadable;  // counts as absent: writing will say why
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, unreadable)))
    return Json::object();
  const std::string text = read_text(path, "run.json");
  try {
    Json json = parse_ordered_json(text);
    return json.is_object() ? json : Json::object();
  } catch (const InvalidInput&) {
    return Json::object();  // a damaged record is no reason to lose the run
  }
}

Json describe(const RunDescription& description) {
  const Machine machine = this_machine();
  const Versions built = versions();
  Json json{
      {"started", utc_time()},
      {"seed", description.seed},
      {"num_ranks", description.num_ranks},
      {"transport", description.transport},
      {"device", description.device},
      {"placement", Json::parse(description.placement_json)},
      {"versions",
       {{"tessera", built.tessera}, {"libtorch", built.libtorch}, {"compiler", built.compiler}}},
      {"machine",
       {{"hostname", machine.hostname},
        {"cpu_model", machine.cpu_model},
        {"cores", machine.cores},
        {"memory_bytes", machine.memory_bytes}}},
      {"config", Json::parse(description.config_json)}};
  if (!description.intensities_json.empty())
    json["intensities"] = Json::parse(description.intensities_json);
  return json;
}

/// "nets/lung.pt" → "lung", "unet2d:base=8" → "unet2d".
std::string short_name(const std::string& model) {
  const std::string name = std::filesystem::path(model.substr(0, model.find(':'))).stem().string();
  return name.empty() ? "run" : name;
}

/// What `read` finds in the run.json of a folder, an object.
template <class Read>
auto with_description(const std::string& folder, const Read& read) {
  const std::string path = (std::filesystem::path(folder) / "run.json").string();
  const std::string text = read_text(path, "run.json");
  try {
    const Json json = parse_ordered_json(text);
    if (!json.is_object()) throw_error<InvalidInput>("it is not an object");
    return read(json);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "[run.json] {} does not say how the run was configured: {}; a start that resumes the run "
        "writes it anew",
        path, cut_short(error.what()));
  }
}

}  // namespace

bool is_run_folder(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::exists(std::filesystem::path(path) / "run.json", unreadable);
}

TrainConfig config_of_run(const std::string& folder) {
  return with_description(folder, [](const Json& json) {
    if (!json.contains("config")) throw_error<InvalidInput>("it has no \"config\"");
    return config_from_json(json["config"].dump());
  });
}

Intensities intensities_of_run(const std::string& folder) {
  return with_description(folder, [](const Json& json) {
    return json.contains("intensities") ? intensities_from_json(json["intensities"].dump())
                                        : Intensities();
  });
}

std::string checkpoints_of_run(const std::string& folder) { return folder + "/checkpoints"; }

std::string new_run_folder(const std::string& model) {
  const std::string parent = "runs";
  const std::string name =
      fmt::format("{}/{}-{}", parent, short_name(model), utc_time().substr(0, 10));
  write_in_run([&] { make_folder(parent); });
  for (int64_t number = 1;; ++number) {
    const std::string path = fmt::format("{}-{}", name, number);
    // The system lets one of several processes make it.
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) write_in_run([&] { throw_file_error("make the folder", path, errno); });
  }
}

void check_same_settings(const std::string& folder, const TrainingState& checkpoint,
                         const TrainConfig& config) {
  const auto recorded = checkpoint.metadata.find("config");
  if (recorded == checkpoint.metadata.end()) return;
  const std::vector<std::string> changes = changed_settings(recorded->second, config);
  if (changes.empty()) return;
  throw_error<InvalidInput>(
      "[--run] {} holds a run with other settings:\n  {}\nresume it with the settings that it has, "
      "or give this run another folder with --run",
      folder, joined(changes, "\n  "));
}

void write_in_run(const std::function<void()>& write) {
  try {
    write();
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "{}; --run gives the run's folder, and a run that is started again resumes", error.what());
  }
}

RunFolder::RunFolder(const std::string& path) : path_(path) {
  if (path.empty())
    throw_error<InvalidInput>("[run folder] the path is empty; give one with --run");
  write_in_run([&] { make_folder(path); });
}

std::string RunFolder::file(const std::string& name) const {
  return (std::filesystem::path(path_) / name).string();
}

bool RunFolder::holds_run() const { return is_run_folder(path_); }

void RunFolder::write_description(const RunDescription& description) const {
  Json json = describe(description);
  if (description.resumed_at) {
    Json before = read_description(file("run.json"));
    Json resumed = Json::array();
    if (before.contains("resumed") && before["resumed"].is_array())
      resumed = std::move(before["resumed"]);
    if (before.contains("first_start"))
      json["first_start"] = std::move(before["first_start"]);
    else if (!before.empty())
      json["first_start"] = std::move(before);
    resumed.push_back({{"at_step", *description.resumed_at},
                       {"time", json["started"]},
                       {"hostname", json["machine"]["hostname"]},
                       {"device", json["device"]},
                       {"placement", json["placement"]}});
    json["resumed"] = std::move(resumed);
  }
  write_in_run(
      [&] { write_file_atomically(file("run.json"), fmt::format("{}\n", json_text(json, 2))); });
}

}  // namespace tessera
