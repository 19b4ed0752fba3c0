// Others that want the same run folder, and a folder that is not where it was.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/attack/faults/fault_table.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

}  // namespace

/// One of them has the folder, and the other one does not disturb it, not even while the first one
/// stands still.
void start_two_runs(Scene& scene) {
  if (scene.below(2) == 0) scene.train_a_part();
  const auto first = scene.start(scene.train());
  std::this_thread::sleep_for(std::chrono::milliseconds(scene.below(3) * scene.below(300)));
  const bool pauses = scene.below(3) == 0;
  if (pauses) first->signal(SIGSTOP);
  const auto second = scene.start(scene.train());
  if (pauses) {
    scene.note("the first one stands still meanwhile");
    second->wait();
    first->signal(SIGCONT);
  }
  const int first_code = scene.expect_end(*first, {2});
  const int second_code = scene.expect_end(*second, {2});
  if (first_code != 0 && second_code != 0) scene.complain("neither of the two runs has done it");
}

/// By another program, in some way that this one may or may not heed.
void hold_lock(Scene& scene) {
  scene.train_a_part();
  const Words places{scene.run(), scene.run() + "/checkpoints", scene.run() + "/metrics.csv",
                     scene.run() + "/run.json"};
  const std::string& place = scene.pick(places);
  scene.note("a lock on " + place);
  const int descriptor = open(place.c_str(), O_RDONLY | O_CLOEXEC);
  flock(descriptor, LOCK_EX | LOCK_NB);
  scene.play(scene.train(), {2});
  close(descriptor);
}

/// To another place, with a link in the old one; or only under another name and back.
void move_run_folder(Scene& scene) {
  scene.train_a_part();
  fs::rename(scene.run(), scene.file("out/moved"));
  fs::create_directory_symlink(scene.file("out/moved"), scene.run());
  scene.play(scene.train(), {});
  fs::remove(scene.run());
  fs::rename(scene.file("out/moved"), scene.run());
}

}  // namespace tessera
