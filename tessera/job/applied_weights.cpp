#include "tessera/job/applied_weights.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/train/run_folder.h"

namespace tessera {

std::string chosen_weights(const std::string& text, const std::string& run) {
  const bool named = text == "best" || text == "last";
  if (run.empty()) {
    if (named)
      throw_error<InvalidInput>(
          "[--weights] {} is a checkpoint of a run; give the run's folder in place of the model, "
          "or "
          "a path",
          text);
    return text;
  }
  if (!text.empty() && !named) return text;
  const std::string folder = checkpoints_of_run(run);
  CheckpointStore store(folder, 1);
  std::optional<std::string> found;
  if (text != "last") found = store.best();
  if (!found && text != "best") found = store.latest_valid();
  if (!found)
    throw_error<InvalidInput>("[--weights] {} has no {}checkpoint; give {}a path", folder,
                              text == "best" ? "best " : "",
                              text == "best" ? "--weights last, or " : "");
  return *found;
}

void load_applied_weights(const std::string& path, const LoadedModel& model,
                          std::vector<at::Tensor>& values) {
  if (path.empty()) return;
  if (path.ends_with(".safetensors") || std::filesystem::is_regular_file(path))
    return load_weights(path, model.graph, values, model.ties);
  const TrainingState state = CheckpointStore(path, 1).load(path);
  check_fits(model.graph, state, path);
  const std::vector<at::Tensor> applied = applied_weights(model.graph, state);
  for (size_t id = 0; id < values.size(); ++id)
    if (values[id].defined()) values[id].copy_(applied[id]);
}

}  // namespace tessera
