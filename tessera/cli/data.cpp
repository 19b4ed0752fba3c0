#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/augment/augmentation.h"
#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/data/picture.h"
#include "tessera/data/png.h"
#include "tessera/files/json.h"
#include "tessera/job/data_report.h"

namespace tessera::cli {
namespace data_command {

constexpr int64_t kMostPicturePixels = 4096 * 4096, kMostPanels = 64, kBarLength = 50;

struct Options {
  ConfigOptions config;
  std::string spec;
  std::string picture;
  int64_t panels = 4;
  DataReportOptions report;
  bool augmentations = false;
  bool json = false;
};

/// "2x96x96", or the smallest and the largest.
std::string sizes_text(const Dataset& data) {
  if (!data.image_shape().empty()) return to_string(data.image_shape());
  Shape least = data.image_shape_of(0), most = least;
  for (int64_t sample = 1; sample < data.size(); ++sample) {
    const Shape shape = data.image_shape_of(sample);
    const auto volume = [](const Shape& each) { return Box::whole(each).volume(); };
    if (volume(shape) < volume(least)) least = shape;
    if (volume(shape) > volume(most)) most = shape;
  }
  return fmt::format("{} to {}", to_string(least), to_string(most));
}

std::string spacing_text(const Dataset& data) {
  const std::vector<double> spacing = data.frame_of(0).spacing;
  if (spacing.empty()) return "not said";
  std::vector<std::string> words;
  for (double each : spacing) words.push_back(fmt::format("{:.4g}", each));
  for (int64_t sample = 1; sample < data.size(); ++sample)
    if (data.frame_of(sample).spacing != spacing)
      return fmt::format("{} mm the first, others differ", joined(words, "x"));
  return joined(words, "x") + " mm";
}

std::string targets_text(const Dataset& data) {
  if (!data.has_targets()) return "none";
  if (data.real_targets()) return "numbers, " + to_string(data.target_shape());
  return fmt::format("labels per {}, {}", data.per_pixel() ? "pixel" : "sample",
                     counted(data.num_classes(), "class", "classes"));
}

std::string type_text(const Dataset& data) {
  std::vector<std::string> names;
  for (PixelType type : data.pixel_types()) names.emplace_back(name_of(type));
  return names.empty() ? "made up" : joined(names);
}

void print_row(const std::string& name, const std::string& text) {
  print_out("{:<12}{}\n", name, text);
}

void print_numbers(const NumberReport& numbers) {
  for (size_t channel = 0; channel < numbers.channels.size(); ++channel) {
    const ImageMoments& found = numbers.channels[channel];
    print_row(fmt::format("  channel {}", channel),
              fmt::format("{:.4g} to {:.4g}, mean {:.4g}, deviation {:.4g}", found.low, found.high,
                          found.mean, found.deviation()));
  }
  const int64_t most = std::max<int64_t>(1, std::ranges::max(numbers.histogram));
  const auto bins = std::ssize(numbers.histogram);
  for (int64_t bin = 0; bin < bins; ++bin) {
    const double low = numbers.low + (numbers.high - numbers.low) * static_cast<double>(bin) /
                                         static_cast<double>(bins);
    const auto length = static_cast<size_t>(numbers.histogram[bin] * kBarLength / most);
    print_out("{:>12.4g} {:>10} {}\n", low, numbers.histogram[bin], std::string(length, '#'));
  }
}

void print_classes(const DataReport& report) {
  int64_t total = report.ignored;
  for (int64_t count : report.class_counts) total += count;
  const auto row = [&](const std::string& name, int64_t count) {
    print_out("  {:<10}{:>12}  {:.2f}%\n", name, count,
              100 * static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, total)));
  };
  print_out("\nlabels\n");
  for (size_t label = 0; label < report.class_counts.size(); ++label)
    row(std::to_string(label), report.class_counts[label]);
  if (report.ignored > 0) row("ignored", report.ignored);
}

void print_text(const DataReport& report) {
  const Dataset& data = *report.data;
  print_row("samples", std::to_string(data.size()));
  print_row("images", sizes_text(data) + " (channels x space)");
  print_row("type", type_text(data));
  print_row("spacing", spacing_text(data));
  print_row("targets", targets_text(data));
  print_out("\nnumbers in the files, {} read\n",
            counted(std::ssize(report.samples_read), "sample"));
  print_numbers(report.before);
  if (!report.class_counts.empty()) print_classes(report);
  print_out("\nfor training: {} of {}\n", counted(report.train->size(), "sample"),
            sizes_text(*report.train));
  if (report.validation)
    print_out("for validation: {} of {}\n", counted(report.validation->size(), "sample"),
              sizes_text(*report.validation));
  if (report.intensities.kind != Intensities::Kind::kNone)
    print_row("normalised", to_json(report.intensities));
  print_numbers(report.after);
}

nlohmann::json as_json(const NumberReport& numbers) {
  nlohmann::json channels = nlohmann::json::array();
  for (const ImageMoments& each : numbers.channels)
    channels.push_back({{"low", each.low},
                        {"high", each.high},
                        {"mean", each.mean},
                        {"deviation", each.deviation()}});
  return {{"channels", channels},
          {"low", numbers.low},
          {"high", numbers.high},
          {"histogram", numbers.histogram}};
}

void print_json(const DataReport& report) {
  const Dataset& data = *report.data;
  nlohmann::json samples = nlohmann::json::array();
  for (int64_t sample : report.samples_read)
    samples.push_back({{"name", data.name_of(sample)},
                       {"image", data.image_shape_of(sample)},
                       {"spacing", data.frame_of(sample).spacing}});
  nlohmann::json json{{"samples", data.size()},
                      {"samples_read", samples},
                      {"numbers", as_json(report.before)},
                      {"labels", report.class_counts},
                      {"ignored_labels", report.ignored},
                      {"intensities", nlohmann::json::parse(to_json(report.intensities))},
                      {"train",
                       {{"samples", report.train->size()},
                        {"image", report.train->image_shape()},
                        {"numbers", as_json(report.after)}}}};
  if (!data.pixel_types().empty()) json["type"] = type_text(data);
  if (report.validation) json["validation"] = {{"samples", report.validation->size()}};
  print_out("{}\n", json_text(json));
}

/// The middle slice of a volume.
Box middle_plane(const Shape& spatial) {
  Box box = Box::whole(spatial);
  if (spatial.size() == 3) box[0] = {spatial[0] / 2, spatial[0] / 2 + 1};
  return box;
}

/// Training samples as they come in the first epoch, and beside each its labels.
void draw_samples(const Dataset& data, const Options& options) {
  check_png_support();
  const Shape first = data.image_shape_of(0);
  if (first.size() < 3 || Box::whole({first.end() - 2, first.end()}).volume() > kMostPicturePixels)
    throw_error<InvalidInput>(
        "[--picture] pictures are for images and volumes with planes of at most {} pixels; cut "
        "patches with --crop",
        kMostPicturePixels);
  std::vector<Panel> panels;
  for (int64_t sample = 0; sample < std::min(options.panels, data.size()); ++sample) {
    const Shape shape = data.image_shape_of(sample);
    const Box plane = middle_plane(Shape(shape.begin() + 1, shape.end()));
    Box box{{0, shape[0]}};
    for (int axis = 0; axis < plane.num_axes(); ++axis) box.push_back(plane[axis]);
    at::Tensor image = at::empty(box.shape(), at::kDouble);
    data.load_image(sample, box, image);
    const Shape flat{shape[0], shape.end()[-2], shape.end()[-1]};
    panels.push_back({data.name_of(sample), picture_of(image.reshape(flat))});
    if (!data.has_target(sample) || data.real_targets() || !data.per_pixel()) continue;
    at::Tensor labels = at::empty(plane.shape(), at::kLong);
    data.load_target(sample, plane, labels);
    panels.push_back({"labels", picture_of_classes(labels.reshape({flat[1], flat[2]}))});
  }
  const int64_t zoom = std::max<int64_t>(1, 128 / std::max(first.end()[-2], first.end()[-1]));
  write_png(options.picture, side_by_side(panels, {.zoom = zoom}).image());
}

int run(const Options& options) {
  if (options.augmentations) {
    write_out(augmentation_help());
    return kOk;
  }
  TrainConfig config = options.config.read();
  if (!options.spec.empty()) config.data = options.spec;
  const DataReport report = report_data(config, options.report);
  if (!options.picture.empty()) draw_samples(*report.train, options);
  if (options.json)
    print_json(report);
  else
    print_text(report);
  return kOk;
}

}  // namespace data_command

void add_data(CLI::App& app, int* exit_code) {
  using namespace data_command;
  CLI::App* command = app.add_subcommand(
      "data", "what would be read: sizes, numbers, classes, and the patches that are trained on");
  auto options = std::make_shared<Options>();
  command->add_option(
      "SPEC", options->spec,
      "folder:PATH, list:FILE.csv or .json, files:IMAGES,TARGETS (docs/data.md), or "
      "made up: synthetic[:options]");
  options->config.add_to(*command, ConfigOptions::Keys::kData);
  command
      ->add_option("--samples", options->report.most_samples,
                   "samples whose pixels are read, at equal distances (0: all)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command->add_option("--bins", options->report.bins, "bars of a histogram")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000}))
      ->group("Output");
  command
      ->add_option("--picture", options->picture,
                   "the first training samples side by side, with their labels (.png)")
      ->group("Output");
  command->add_option("--panels", options->panels, "samples in the picture")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMostPanels))
      ->group("Output");
  command->add_flag("--augmentations", options->augmentations, "what --augment may say");
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
