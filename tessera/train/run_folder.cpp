#include "tessera/train/run_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/files/atomic_file.h"
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

bool RunFolder::holds_run() const {
  std::error_code unreadable;  // counts as absent: writing will say why
  return std::filesystem::exists(file("run.json"), unreadable);
}

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
                       {"placement", json["placement"]}});
    json["resumed"] = std::move(resumed);
  }
  write_in_run(
      [&] { write_file_atomically(file("run.json"), fmt::format("{}\n", json_text(json, 2))); });
}

}  // namespace tessera
