// Disks that are full, read-only or gone under a run.

#include <fmt/format.h>

#include <filesystem>

#include "tests/attack/faults/fault_table.h"
#include "tests/attack/faults/moment.h"
#include "tests/fault/train/small_disk.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kKibibytesForAll = 4096;

}  // namespace

void limit_file_size(Scene& scene) {
  if (scene.below(2) == 0) scene.train_a_part();
  ProgramOptions options;
  options.most_file_bytes = scene.below(20'000);
  scene.note(fmt::format("at most {} bytes a file", *options.most_file_bytes));
  if (scene.launched_by() == LaunchedBy::kMpi)
    scene.play(scene.train(), {2, 3}, options);  // mpirun has the limit, too
  else
    scene.play(scene.train(), {2}, options);
}

void fill_disk(Scene& scene) {
  scene.put_run_on_disk(kKibibytesForAll);
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  const std::string filler = scene.run() + "/filler";
  write_file(filler, std::string(kKibibytesForAll * 1024, 'x'));
  scene.expect_end(*program, {2});
  fs::remove(filler);
}

void start_on_small_disk(Scene& scene) {
  const int64_t kibibytes = 8 + 4 * scene.below(30);
  scene.note(fmt::format("a disk of {} KiB", kibibytes));
  SmallDisk& disk = scene.put_run_on_disk(kibibytes);
  scene.play(scene.train(), {2});
  if (!disk.resize(kKibibytesForAll)) scene.complain("the disk does not grow");
}

void hide_under_read_only_disk(Scene& scene) {
  if (scene.below(2) == 0) scene.train_a_part();
  const std::string folder = scene.run() + (scene.below(2) == 0 ? "" : "/checkpoints");
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  {
    const SmallDisk disk(folder, 64, DiskAccess::kReadOnly);
    program->wait();
  }
  scene.expect_end(*program, {2});
}

void delete_run_folder(Scene& scene) {
  if (scene.below(2) == 0) scene.train_a_part();
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  scene.checkpoints_are_damaged();
  scene.metrics_are_damaged();
  std::error_code busy;  // the program may write into it meanwhile, and keep a part of it
  fs::remove_all(scene.run(), busy);
  if (scene.below(2) == 0) {
    scene.note("another run takes its place");
    scene.play(scene.train(), {2});
  }
  scene.expect_end(*program, {2});
}

/// The folder comes back after the end, so that what was written before it went is found.
void delete_folder_of_weights(Scene& scene) {
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  fs::rename(scene.file("out"), scene.file("gone"));
  program->wait();
  fs::rename(scene.file("gone"), scene.file("out"));
  scene.expect_end(*program, {2});
}

}  // namespace tessera
