#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/open.h"
#include "tessera/data/picture.h"
#include "tessera/data/png.h"
#include "tessera/files/json.h"
#include "tessera/job/predict.h"
#include "tessera/lower/halo_report.h"

namespace tessera::cli {
namespace predict_command {

constexpr int64_t kMaxPicturePixels = 4096 * 4096;

struct Options {
  ConfigOptions config;
  PredictRequest request;
  std::string images;
  std::string picture;
  bool channels_last = false;
  bool json = false;
};

void check_picture(const Shape& sample, const ValueType& output) {
  check_png_support();
  const Shape shape = output.shape();
  if (shape.size() == 4 && !std::equal(sample.begin() + 1, sample.end(), shape.begin() + 2))
    throw_error<InvalidInput>("[--picture] the class map {} has another size than the image {}",
                              to_string(shape), to_string(sample));
  if (sample.size() != 3 || sample[1] * sample[2] > kMaxPicturePixels)
    throw_error<InvalidInput>("[--picture] pictures are for 2-D images of at most {} pixels",
                              kMaxPicturePixels);
}

/// The first image, its labels where the data has them per pixel, and what was predicted, with the
/// workers' boxes.
void draw_first_sample(const Options& options, const Job& job, const Dataset& data) {
  const Shape shape = data.image_shape();
  const Box all = Box::whole(shape), plane = without_axis(all, 0);
  at::Tensor image = at::empty(shape, at::kFloat);
  data.load_image(0, all, image);
  std::vector<Panel> panels{{"image", picture_of(image)}};
  at::Tensor labels = at::empty(plane.shape(), at::kLong);
  if (data.per_pixel() && job.graph().type(job.graph().outputs()[0]).num_spatial() == 2) {
    data.load_target(0, plane, labels);
    panels.push_back({"truth", picture_of_classes(labels)});
    ArrayReader(options.request.classes).read({{0, 1}, plane[0], plane[1]}, labels.unsqueeze(0));
    panels.push_back({"prediction", picture_of_classes(labels)});
  }
  PanelOptions drawing;
  drawing.zoom = std::max<int64_t>(1, 256 / std::max(shape[1], shape[2]));
  const Layout layout = input_layout(job.graph(), job.plan);
  for (const Piece& piece : layout.pieces())
    if (piece.box[0].begin == 0) drawing.boxes.push_back({piece.box[2], piece.box[3]});
  write_png(options.picture, side_by_side(panels, drawing).image());
}

void report(const Options& options, int64_t samples) {
  const PredictRequest& files = options.request;
  const std::pair<const char*, std::string> results[] = {
      {"classes", files.classes}, {"probabilities", files.probabilities}, {"raw", files.raw}};
  nlohmann::json json{{"samples", samples}};
  for (const auto& [name, file] : results) {
    if (file.empty()) continue;
    json[name] = file;
    if (!options.json) print_out("{} -> {}\n", counted(samples, "sample"), file);
  }
  if (!options.picture.empty()) json["picture"] = options.picture;
  if (options.json) print_out("{}\n", json_text(json));
}

int run(const Options& options) {
  const TrainConfig config = options.config.read();
  const Job job = resolve_job(config);
  const bool channels_last = options.channels_last || config.channels_last;
  if (!options.picture.empty() && options.request.classes.empty())
    throw_error<InvalidInput>("[--picture] draws the class maps; give --output, too");
  Shape sample = job.graph().type(job.graph().inputs()[0]).shape();
  sample.erase(sample.begin());
  const std::unique_ptr<Dataset> data =
      open_dataset(options.images, sample, job.seed, 0,
                   channels_last ? ChannelAxis::kLast : ChannelAxis::kFirst);
  if (!options.picture.empty()) check_picture(sample, job.graph().type(job.graph().outputs()[0]));
  predict(job, *data, options.request);
  if (is_secondary_process()) return kOk;
  if (!options.picture.empty()) draw_first_sample(options, job, *data);
  report(options, data->size());
  return kOk;
}

}  // namespace predict_command

void add_predict(CLI::App& app, int* exit_code) {
  using namespace predict_command;
  CLI::App* command = app.add_subcommand(
      "predict", "applies a trained model to images; writes class maps and probabilities as .npy");
  auto options = std::make_shared<Options>();
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  command
      ->add_option("--weights", options->request.weights,
                   "safetensors file, or a checkpoint folder of `tessera train` (default: those of "
                   "the model file)")
      ->group("Files");
  command->add_option("--images", options->images, config_key("--data").help)
      ->required()
      ->group("Files");
  command->add_flag("--channels-last", options->channels_last, config_key("--channels-last").help)
      ->group("Files");
  command->add_option("--output", options->request.classes, "class maps: N x space (.npy)")
      ->group("Files");
  command
      ->add_option("--probabilities", options->request.probabilities, "N x classes x space (.npy)")
      ->group("Files");
  command
      ->add_option("--raw", options->request.raw,
                   "the first output as it is: N x channels x space (.npy)")
      ->group("Files");
  command->add_option("--picture", options->picture, "the first 2-D image and its classes (.png)")
      ->group("Files");
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
