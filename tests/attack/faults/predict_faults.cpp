// Faults on predictions: their file is there whole or not at all.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/attack/faults/damage.h"
#include "tests/attack/faults/fault_table.h"
#include "tests/fault/train/small_disk.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void sleep_into_prediction(Scene& scene) {
  std::this_thread::sleep_for(std::chrono::microseconds(scene.below(900'000)));
}

}  // namespace

void kill_prediction(Scene& scene) {
  const int signals[] = {SIGKILL, SIGTERM, SIGINT};
  if (scene.below(2) == 0) scene.leave_older_prediction();
  for (int64_t left = 1 + scene.below(2); left > 0; --left) {
    const int number = signals[scene.below(3)];
    const auto program = scene.start(scene.predict());
    sleep_into_prediction(scene);
    program->signal(number);
    scene.expect_end(*program, {128 + number, 3});
    scene.expect_whole_prediction();
  }
}

void limit_prediction(Scene& scene) {
  ProgramOptions options;
  options.most_file_bytes = scene.below(100'000);
  scene.note(fmt::format("at most {} bytes a file", *options.most_file_bytes));
  if (scene.below(2) == 0) scene.leave_older_prediction();
  scene.play(scene.predict(), {2, 3}, options);
  scene.expect_whole_prediction();
}

void fill_disk_of_prediction(Scene& scene) {
  const int64_t kibibytes = 4 + 4 * scene.below(25);
  scene.note(fmt::format("a disk of {} KiB", kibibytes));
  SmallDisk disk(scene.file("out"), kibibytes);
  scene.play(scene.predict(), {2, 3});
  scene.expect_whole_prediction();
}

/// The second may be refused; whatever is there at the end is one prediction, not parts of two.
void start_two_predictions(Scene& scene) {
  const auto first = scene.start(scene.predict());
  std::this_thread::sleep_for(std::chrono::milliseconds(scene.below(3) * scene.below(200)));
  const auto second = scene.start(scene.predict());
  const int first_code = scene.expect_end(*first, {2, 3});
  const int second_code = scene.expect_end(*second, {2, 3});
  if (first_code != 0 && second_code != 0) scene.complain("neither of the two has done it");
  scene.expect_whole_prediction();
}

void replace_images(Scene& scene) {
  const std::string path = scene.file("data/many_images.npy");
  const std::string before = read_file(path);
  const auto program = scene.start(scene.predict());
  sleep_into_prediction(scene);
  if (scene.below(2) == 0) {
    write_npy(path + ".new", {3, 1, 5, 7}, std::vector<float>(3 * 5 * 7));
    fs::rename(path + ".new", path);
  } else {
    const int64_t bytes = scene.below(before.size());
    scene.note(fmt::format("the images shrink from {} to {} bytes", before.size(), bytes));
    fs::resize_file(path, bytes);
  }
  scene.expect_end(*program, {2, 3});
  scene.expect_whole_prediction();
  fs::remove(path);
  write_file(path, before);
}

void damage_weights(Scene& scene) {
  const std::string path = scene.file("data/given.safetensors");
  const std::string before = read_file(path);
  damage_file(scene, path);
  const auto program = scene.start(scene.predict());
  const std::optional<int> code = program->wait();
  // A weights file has no checksum: a flipped bit is another network, which may be applied.
  if (code != 0) scene.expect_end(*program, {2, 3});
  fs::remove(path);
  fs::remove(scene.file("out/classes.npy"));
  write_file(path, before);
}

}  // namespace tessera
