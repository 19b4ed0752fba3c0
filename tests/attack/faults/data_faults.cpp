// Data that changes while a run reads it.

#include <fmt/format.h>

#include <filesystem>

#include "tests/attack/faults/fault_table.h"
#include "tests/attack/faults/moment.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Calls `change` for the images or the targets at a random moment of a training run, and puts
/// the old file back after its end.
template <class Change>
void change_data(Scene& scene, const Change& change) {
  const std::string path =
      scene.file("data/" + (scene.below(2) == 0 ? "images.npy" : scene.job().targets));
  const std::string before = read_file(path);
  if (scene.below(2) == 0) scene.train_a_part();
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  change(path, before);
  scene.expect_end(*program, {2, 3});
  fs::remove(path);
  write_file(path, before);
}

}  // namespace

/// A run that has the old file open goes on with it; one that begins later refuses the new one.
void replace_data(Scene& scene) {
  change_data(scene, [&](const std::string& path, const std::string&) {
    write_npy(path + ".new", {3, 1, 5, 7}, std::vector<float>(3 * 5 * 7));
    fs::rename(path + ".new", path);
  });
}

/// In place: what was mapped is gone. Less than a page of it is not even a fault of the processor.
void shrink_data(Scene& scene) {
  change_data(scene, [&](const std::string& path, const std::string& before) {
    const int64_t bytes =
        scene.below(2) == 0 ? before.size() - 1 - scene.below(200) : scene.below(before.size());
    scene.note(fmt::format("{} shrinks from {} to {} bytes", path, before.size(), bytes));
    fs::resize_file(path, std::max<int64_t>(bytes, 0));
  });
}

}  // namespace tessera
