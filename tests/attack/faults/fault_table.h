#pragma once
// The faults, one function each: it disturbs the job of a scene, and leaves a scene in which the
// same command must recover.

#include <vector>

#include "tests/attack/faults/scene.h"

namespace tessera {

enum class Strikes { kTraining, kPrediction };
/// Without what the machine must have, a fault is skipped.
enum class Needs { kNothing, kMount, kMpi };

struct Fault {
  const char* name;
  Strikes strikes;
  Needs needs;
  void (*play)(Scene& scene);
};
const std::vector<Fault>& fault_table();

// signal_faults.cpp
void kill_run(Scene& scene);
void stop_run(Scene& scene);
void pause_run(Scene& scene);
void kill_one_rank(Scene& scene);
void pause_one_rank(Scene& scene);
void kill_launcher(Scene& scene);

// disk_faults.cpp
void limit_file_size(Scene& scene);
void fill_disk(Scene& scene);
void start_on_small_disk(Scene& scene);
void hide_under_read_only_disk(Scene& scene);
void delete_run_folder(Scene& scene);
void delete_folder_of_weights(Scene& scene);

// damage_faults.cpp
void damage_checkpoints(Scene& scene);
void delete_checkpoint_at_start(Scene& scene);
void damage_metrics(Scene& scene);
void damage_description(Scene& scene);
void shift_clock(Scene& scene);
void plant_leftovers(Scene& scene);

// rival_faults.cpp
void start_two_runs(Scene& scene);
void hold_lock(Scene& scene);
void move_run_folder(Scene& scene);

// data_faults.cpp
void replace_data(Scene& scene);
void shrink_data(Scene& scene);

// predict_faults.cpp
void kill_prediction(Scene& scene);
void limit_prediction(Scene& scene);
void fill_disk_of_prediction(Scene& scene);
void start_two_predictions(Scene& scene);
void replace_images(Scene& scene);
void damage_weights(Scene& scene);

}  // namespace tessera
