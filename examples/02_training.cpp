// Training on a grid: a U-Net of the zoo on synthetic images, each cut over 2 x 2 workers.
//
// The configuration is that of `tessera train`, key by key. The run folder gets checkpoints and
// metrics; started again, the program would resume. At last the weights are applied to new images.

#include <tessera/tessera.h>

#include <filesystem>

using namespace tessera;

int main() {
  const std::string folder = std::filesystem::temp_directory_path() / "tessera_example_training";
  std::filesystem::remove_all(folder);

  TrainConfig config;
  config.model = "unet2d:base=4,depth=2,classes=3";
  config.input = "4x1x32x32";
  config.data = "synthetic:samples=40,classes=3";
  config.space = "2x2";
  config.dtype = "float64";
  config.optimiser = "adamw";
  config.learning_rate = 0.01;
  config.epochs = 3;
  config.folder = folder;
  config.save_weights = folder + "/weights.safetensors";
  config = resolved(config);

  const Job job = resolve_training(config);
  const TrainOutcome outcome = train(job, config);
  fmt::print("{} steps, validation {}\n", outcome.steps, to_string(*outcome.validation));

  const auto images = open_dataset("synthetic:samples=8,classes=3", {1, 32, 32}, /*seed=*/2);
  predict(job, *images, {.weights = config.save_weights, .classes = folder + "/classes.npy"});
  fmt::print("class maps of {} new images written\n", images->size());
  std::filesystem::remove_all(folder);
  return 0;
}
