#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/picture.h"
#include "tessera/data/png.h"
#include "tessera/files/json.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/predict.h"
#include "tessera/job/prediction_results.h"
#include "tessera/job/result_file.h"
#include "tessera/job/run_source.h"
#include "tessera/lower/halo_report.h"

namespace tessera::cli {
namespace predict_command {

constexpr int64_t kMaxPicturePixels = 4096 * 4096;

struct Options {
  ConfigOptions config;
  PredictRequest request;
  std::string images;
  std::string format;
  std::string window;
  std::string picture;
  std::string overlay;
  bool channels_last = false;
  bool json = false;
};

/// `option` asks for a drawing of the first sample.
void check_drawing(const std::string& option, const Options& options, const Dataset& data,
                   const Graph& graph) {
  check_png_support();
  if (options.request.classes.empty())
    throw_error<InvalidInput>("[{}] draws the class maps; give --output, too", option);
  const Shape sample = data.image_shape_of(0);
  if (sample.size() != 3 || sample[1] * sample[2] > kMaxPicturePixels)
    throw_error<InvalidInput>("[{}] pictures are for 2-D images of at most {} pixels", option,
                              kMaxPicturePixels);
  const Shape input = graph.type(graph.inputs()[0]).shape();
  const Shape output = graph.type(graph.outputs()[0]).shape();
  if (output.size() == 4 && !std::equal(input.begin() + 2, input.end(), output.begin() + 2))
    throw_error<InvalidInput>("[{}] the class map {} has another size than the image {}", option,
                              to_string(output), to_string(sample));
}

/// The first image, what was predicted for it, and the workers' boxes.
struct Drawn {
  at::Tensor image;
  at::Tensor classes;  // undefined where images have one class
  std::vector<Box> boxes;
};

Drawn first_sample(const Options& options, const Job& job, const AppliedData& data) {
  const ResultPlace place = result_place(job, data, {}, options.request);
  const Shape shape = place.images.image_shape_of(0);
  Drawn drawn{at::empty(shape, at::kFloat), {}, {}};
  place.images.load_image(0, Box::whole(shape), drawn.image);
  if (job.graph().type(job.graph().outputs()[0]).num_spatial() == 2) {
    const ArrayReader file(class_map_file(place, 0));
    Box box = Box::whole(file.shape());
    if (box.num_axes() == 3) box[0] = {0, 1};  // the first of all samples
    drawn.classes = at::empty({shape[1], shape[2]}, at::kLong);
    file.read(box, drawn.classes);
  }
  const Layout layout = input_layout(job.graph(), job.plan);
  const Shape& input = layout.global_shape();
  if (!data.comes_back(job.graph()) &&
      std::equal(shape.begin(), shape.end(), input.begin() + 1, input.end()))
    for (const Piece& piece : layout.pieces())
      if (piece.box[0].begin == 0) drawn.boxes.push_back({piece.box[2], piece.box[3]});
  return drawn;
}

/// Beside the prediction the labels, where the data has them per pixel.
void draw_picture(const Options& options, const Drawn& drawn, const Dataset& data) {
  std::vector<Panel> panels{{"image", picture_of(drawn.image)}};
  if (drawn.classes.defined()) {
    if (data.has_target(0) && data.per_pixel() && !data.real_targets()) {
      const at::Tensor labels = at::empty(data.target_shape_of(0), at::kLong);
      data.load_target(0, Box::whole(data.target_shape_of(0)), labels);
      panels.push_back({"truth", picture_of_classes(labels)});
    }
    panels.push_back({"prediction", picture_of_classes(drawn.classes)});
  }
  PanelOptions drawing;
  drawing.zoom = std::max<int64_t>(1, 256 / std::max(drawn.image.size(1), drawn.image.size(2)));
  drawing.boxes = drawn.boxes;
  write_png(options.picture, side_by_side(panels, drawing).image());
}

void draw_overlay(const Options& options, const Drawn& drawn) {
  if (!drawn.classes.defined())
    throw_error<InvalidInput>("[--overlay] the network gives an image one class; leave it out");
  write_png(options.overlay, overlay_of(drawn.image, drawn.classes).image());
}

void draw(const Options& options, const Job& job, const AppliedData& data) {
  if (options.picture.empty() && options.overlay.empty()) return;
  const Drawn drawn = first_sample(options, job, data);
  if (!options.picture.empty())
    draw_picture(options, drawn, result_place(job, data, {}, options.request).images);
  if (!options.overlay.empty()) draw_overlay(options, drawn);
}

void report(const Options& options, int64_t samples) {
  const PredictRequest& files = options.request;
  const std::pair<const char*, std::string> results[] = {
      {"classes", files.classes}, {"probabilities", files.probabilities}, {"raw", files.raw}};
  nlohmann::json json{{"samples", samples}, {"weights", files.weights}};
  for (const auto& [name, file] : results) {
    if (file.empty()) continue;
    json[name] = file;
    if (!options.json) print_out("{} -> {}\n", counted(samples, "sample"), file);
  }
  if (!options.picture.empty()) json["picture"] = options.picture;
  if (!options.overlay.empty()) json["overlay"] = options.overlay;
  if (options.json) print_out("{}\n", json_text(json));
}

int run(Options options) {
  ConfigOptions::OfRun read = options.config.read_of_run();
  TrainConfig& config = read.config;
  options.request.weights = chosen_weights(options.request.weights, read.run);
  if (!options.format.empty()) options.request.ending = "." + options.format;
  if (!options.window.empty())
    options.request.window = Shape(parse_sizes(options.window, "--window"));
  if (!read.run.empty() && !is_secondary_process())
    print_error("weights of {}\n", options.request.weights);
  config.data = options.images;
  config.channels_last = config.channels_last || options.channels_last;
  const Job job = resolve_job(config);
  const AppliedData data = open_applied_data(config, job.graph(), read.run);
  for (const auto& [option, path] :
       {std::pair("--picture", options.picture), std::pair("--overlay", options.overlay)}) {
    if (path.empty()) continue;
    check_drawing(option, options, *data.own, job.graph());
    options.request.drawings.push_back({option, path});
  }
  predict(config, data, options.request);
  if (is_secondary_process()) return kOk;
  draw(options, job, data);
  report(options, data.seen->size());
  return kOk;
}

}  // namespace predict_command

void add_predict(CLI::App& app, int* exit_code) {
  using namespace predict_command;
  CLI::App* command = app.add_subcommand("predict",
                                         "applies a trained model, or that of a run's folder, to "
                                         "images of any size; writes class maps "
                                         "and probabilities");
  auto options = std::make_shared<Options>();
  PredictRequest& request = options->request;
  const auto add = [&](const std::string& name, auto& variable, const std::string& help) {
    return command->add_option(name, variable, help)->group("Files");
  };
  add("--images,--data", options->images,
      "folder:PATH, list:FILE, files:IMAGES (targets are not read), or synthetic:...")
      ->required();
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  add("--weights", request.weights,
      "best or last: the run's checkpoint; a safetensors file; or a checkpoint folder (default: "
      "the run's best, or its last where there was no validation; those of a model file)");
  command->add_flag("--channels-last", options->channels_last, config_key("--channels-last").help)
      ->group("Files");
  const std::string endings = joined(result_endings());
  std::vector<std::string> formats;
  for (const std::string& ending : result_endings()) formats.push_back(ending.substr(1));
  const std::string each = fmt::format(" ({}); FOLDER/ for a file each", endings);
  add("--output", request.classes, "class maps: N x space" + each);
  add("--probabilities", request.probabilities, "N x classes x space" + each);
  add("--raw", request.raw, "the first output as it is: N x channels x space" + each);
  add("--format", options->format,
      "of the files in a folder: " + joined(formats) + " (default: that of the images)")
      ->check(CLI::IsMember(formats));
  add("--picture", options->picture, "the first 2-D image and its classes (.png)");
  add("--overlay", options->overlay, "the first 2-D image with its classes over it (.png)");
  command
      ->add_flag("--flips", request.flips,
                 "mean probabilities of the image and its mirror images: 4 of a 2-D image, 8 of a "
                 "3-D one")
      ->group("Prediction");
  command
      ->add_option("--largest-component", request.largest_component,
                   "classes of which class maps keep the largest connected part only: all, or 1,3")
      ->group("Prediction");
  command
      ->add_option("--window", options->window,
                   "largest part of an image that is seen at once: 2048x2048 (default: the whole "
                   "image where it fits into memory); changes no number")
      ->group("Prediction");
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
