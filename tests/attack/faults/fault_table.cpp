#include "tests/attack/faults/fault_table.h"

namespace tessera {

const std::vector<Fault>& fault_table() {
  using enum Strikes;
  using enum Needs;
  static const std::vector<Fault> faults{
      {"run killed", kTraining, kNothing, kill_run},
      {"run told to stop", kTraining, kNothing, stop_run},
      {"run paused", kTraining, kNothing, pause_run},
      {"one rank killed", kTraining, kMpi, kill_one_rank},
      {"one rank paused", kTraining, kMpi, pause_one_rank},
      {"launcher killed", kTraining, kMpi, kill_launcher},
      {"limit on file sizes", kTraining, kNothing, limit_file_size},
      {"disk filled by another", kTraining, kMount, fill_disk},
      {"disk too small", kTraining, kMount, start_on_small_disk},
      {"read-only disk mounted over the run", kTraining, kMount, hide_under_read_only_disk},
      {"run folder deleted", kTraining, kNothing, delete_run_folder},
      {"folder of the weights deleted", kTraining, kNothing, delete_folder_of_weights},
      {"checkpoints damaged", kTraining, kNothing, damage_checkpoints},
      {"checkpoint deleted at the start", kTraining, kNothing, delete_checkpoint_at_start},
      {"metrics.csv damaged", kTraining, kNothing, damage_metrics},
      {"run.json damaged", kTraining, kNothing, damage_description},
      {"clock of files shifted", kTraining, kNothing, shift_clock},
      {"leftovers planted", kTraining, kNothing, plant_leftovers},
      {"two runs in one folder", kTraining, kNothing, start_two_runs},
      {"lock held by another", kTraining, kNothing, hold_lock},
      {"run folder moved", kTraining, kNothing, move_run_folder},
      {"data replaced", kTraining, kNothing, replace_data},
      {"data shrunk", kTraining, kNothing, shrink_data},
      {"prediction killed", kPrediction, kNothing, kill_prediction},
      {"limit on the prediction's size", kPrediction, kNothing, limit_prediction},
      {"disk of the prediction too small", kPrediction, kMount, fill_disk_of_prediction},
      {"two predictions to one file", kPrediction, kNothing, start_two_predictions},
      {"images replaced", kPrediction, kNothing, replace_images},
      {"weights damaged", kPrediction, kNothing, damage_weights},
  };
  return faults;
}

}  // namespace tessera
