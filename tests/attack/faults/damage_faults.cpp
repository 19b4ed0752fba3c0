// Files of a run that change between two starts, or while it starts.

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "tests/attack/faults/damage.h"
#include "tests/attack/faults/fault_table.h"
#include "tests/attack/faults/moment.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// JSON that is well formed and not a description of a run.
const Words kOtherDescriptions{
    "{}",
    "[]",
    "null",
    "3",
    "{\"resumed\": 3}",
    "{\"resumed\": {\"at\": 1}}",
    "{\"resumed\": \"text\"}",
    "{\"resumed\": null, \"first_start\": 7}",
    "{\"first_start\": [[[]]]}",
    "{\"started\": {}, \"machine\": [], \"resumed\": [3, null]}",
    std::string(5000, '['),
    "{\"resumed\": [" + std::string(3000, ' ') + "]}",
};

void kill_after_some_steps(Scene& scene) {
  const int64_t steps = 4 + scene.below(kJobSteps - 6);
  const auto program = scene.start(scene.train());
  await([&] { return last_step(scene.run()) >= steps || program->ended(); });
  program->signal(SIGKILL);
  scene.expect_end(*program, {128 + SIGKILL});
}

/// Trains some steps to an end of one kind or the other.
void leave_a_run(Scene& scene) {
  if (scene.below(2) == 0)
    scene.train_a_part();
  else
    kill_after_some_steps(scene);
}

}  // namespace

void damage_checkpoints(Scene& scene) {
  leave_a_run(scene);
  scene.checkpoints_are_damaged();
  std::vector<std::string> all = checkpoints(scene.run());
  for (int64_t left = 1 + scene.below(3); left > 0 && !all.empty(); --left, all.pop_back()) {
    const int64_t kind = scene.below(5);
    if (kind == 0) {
      scene.note("removed: " + all.back());
      fs::remove_all(all.back());
      continue;
    }
    if (kind == 1) {
      scene.note("a file in place of " + all.back());
      fs::remove_all(all.back());
      write_file(all.back(), "a file\n");
      continue;
    }
    damage_file(scene, all.back() + (kind == 2 ? "/state.json" : "/tensors.safetensors"));
  }
}

/// Between the program's look at a checkpoint and its reading.
void delete_checkpoint_at_start(Scene& scene) {
  leave_a_run(scene);
  scene.checkpoints_are_damaged();
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  const std::vector<std::string> all = checkpoints(scene.run());
  if (!all.empty()) {
    scene.note("removed: " + all.back());
    std::error_code busy;
    fs::remove_all(all.back(), busy);
  }
  scene.expect_end(*program, {2});
}

void damage_metrics(Scene& scene) {
  leave_a_run(scene);
  scene.metrics_are_damaged();
  const std::string path = scene.run() + "/metrics.csv";
  damage_file(scene, path);
  const auto program = scene.start(scene.train());
  if (scene.expect_end(*program, {2}) != 2) return;
  if (program->errors().find("metrics.csv") == std::string::npos)
    scene.complain("the message does not name metrics.csv");
  fs::remove(path);  // as the message says
}

void damage_description(Scene& scene) {
  leave_a_run(scene);
  const std::string path = scene.run() + "/run.json";
  if (scene.below(2) == 0) {
    damage_file(scene, path);
  } else {
    write_file(path, scene.pick(kOtherDescriptions));
    scene.note("run.json holds " + read_file(path).substr(0, 60));
  }
}

void shift_clock(Scene& scene) {
  leave_a_run(scene);
  const std::chrono::hours years(24 * 365 * (scene.below(160) - 80));
  scene.note(fmt::format("files are from {} hours ahead", years.count()));
  for (const auto& [path, content] : files_below(scene.run()))
    if (scene.below(2) == 0)
      fs::last_write_time(scene.run() + "/" + path, fs::file_time_type::clock::now() + years);
}

/// Under every name that a run has been seen to use and does not keep: where names can be guessed,
/// a neighbour can guess them, too.
void plant_leftovers(Scene& scene) {
  const Words folders{scene.run() + "/checkpoints", scene.run(), scene.file("out")};
  std::vector<std::string> seen;
  {
    std::vector<std::unique_ptr<FolderEvents>> events;
    for (const std::string& folder : folders)
      events.push_back(std::make_unique<FolderEvents>(folder));
    leave_a_run(scene);
    for (size_t i = 0; i < folders.size(); ++i)
      for (const std::string& name : events[i]->names())
        if (!fs::exists(folders[i] + "/" + name) && name.starts_with("."))
          seen.push_back(folders[i] + "/" + name);
  }
  for (const std::string& path : seen) {
    const int64_t kind = scene.below(4);
    scene.note(fmt::format("leftover {} at {}", kind, path));
    if (kind == 0) write_file(path, "left over\n");
    if (kind == 1) fs::create_symlink(scene.file("beside.txt"), path);
    if (kind == 2) fs::create_hard_link(scene.file("beside.txt"), path);
    if (kind == 3) fs::create_directories(path + "/with/something");
  }
  scene.play(scene.train(), {2});
  for (const std::string& path : seen) fs::remove_all(path);
}

}  // namespace tessera
