// One's own data set: images that are computed when they are asked for. A worker asks for its own
// box of an image and never sees the rest; a reader of files would read that box alone.

#include <tessera/tessera.h>

#include <filesystem>

using namespace tessera;

/// Rings around a centre that moves from image to image; pixels are labelled by whether they lie on
/// a dark or on a bright ring.
class Rings final : public Dataset {
 public:
  int64_t size() const override { return 48; }
  Shape image_shape() const override { return {1, 40, 40}; }
  int64_t num_classes() const override { return 2; }
  bool per_pixel() const override { return true; }

  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    target.copy_(at::sin(radius(sample, box[1], box[2])).unsqueeze(0));
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    target.copy_(at::sin(radius(sample, box[0], box[1])).gt(0));
  }

 private:
  /// Of every pixel of a box, from global coordinates: the same whoever asks.
  static at::Tensor radius(int64_t sample, const Range& rows, const Range& columns) {
    const at::Tensor y = at::arange(rows.begin, rows.end, at::kDouble) - (5 + sample % 30);
    const at::Tensor x = at::arange(columns.begin, columns.end, at::kDouble) - (35 - sample % 25);
    return at::sqrt(y.square().unsqueeze(1) + x.square().unsqueeze(0) + 1e-3);
  }
};

int main() {
  const std::string folder = std::filesystem::temp_directory_path() / "tessera_example_dataset";
  std::filesystem::remove_all(folder);

  TrainConfig config;
  config.model = "unet2d:base=4,depth=2,classes=2";
  config.input = "4x1x40x40";
  config.space = "2x1";
  config.dtype = "float64";
  config.learning_rate = 0.1;
  config.epochs = 2;
  config.folder = folder;
  config = resolved(config);

  const TrainOutcome outcome =
      train(resolve_training(config), config, std::make_shared<const Rings>());
  fmt::print("{} steps, validation {}\n", outcome.steps, to_string(*outcome.validation));
  std::filesystem::remove_all(folder);
  return 0;
}
