#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/mean.h"
#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/config_options.h"
#include "tessera/files/atomic_file.h"
#include "tessera/files/json.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/evaluate.h"
#include "tessera/job/job.h"
#include "tessera/job/launch.h"
#include "tessera/job/run_source.h"

namespace tessera::cli {
namespace evaluate_command {

constexpr int64_t kMostClassesShown = 20;  // in a matrix of counts

struct Options {
  ConfigOptions config;
  EvaluateRequest request;
  std::string data;
  std::string output;
  std::string window;
  bool channels_last = false;
  bool json = false;
};

/// A column of the table of classes.
struct Column {
  std::string name;   // in files
  std::string words;  // for people
  std::vector<double> values;
  double mean = NAN;
};

std::vector<Column> columns_of(const Evaluation& evaluation) {
  const Scores& scores = evaluation.result.scores;
  std::vector<Column> columns;
  if (evaluation.task == ScoredTask::kNumbers) return columns;
  if (evaluation.task == ScoredTask::kPixelClasses)
    columns = {{"dice", "Dice", scores.dice, scores.mean_dice},
               {"iou", "IoU", scores.iou, scores.mean_iou}};
  columns.push_back({"precision", "precision", scores.precision, scores.mean_precision});
  columns.push_back({"recall", "recall", scores.recall, scores.mean_recall});
  if (evaluation.surfaces.empty()) return columns;
  std::vector<double> hausdorff, dice;
  for (const SurfaceScores& surface : evaluation.surfaces) {
    hausdorff.push_back(surface.hausdorff95);
    dice.push_back(surface.surface_dice);
  }
  columns.push_back({"hausdorff95", "Hausdorff 95%", hausdorff, mean_of_numbers(hausdorff)});
  columns.push_back({"surface_dice", "surface Dice", dice, mean_of_numbers(dice)});
  return columns;
}

/// What a class is called: its name in the data, or else its number.
std::string name_of_class(const Evaluation& evaluation, size_t k) {
  return k < evaluation.class_names.size() ? evaluation.class_names[k] : fmt::format("{}", k);
}

/// On a screen, where bytes that go on with a letter of UTF-8 take no room.
size_t columns_taken(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0) != 0x80; }));
}

std::string right_aligned(const std::string& text, size_t width) {
  const size_t taken = columns_taken(text);
  return std::string(width > taken ? width - taken : 0, ' ') + text;
}

/// A cell that may hold what separates cells.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

std::string cell(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

void print_row(const std::string& name, size_t width, const std::vector<Column>& columns,
               const std::function<std::string(const Column&)>& cell_of) {
  std::string row = right_aligned(name, width);
  for (const Column& column : columns)
    row += "  " + right_aligned(cell_of(column), std::max<size_t>(6, column.words.size()));
  print_out("{}\n", row);
}

void print_matrix(const Evaluation& evaluation) {
  const ConfusionCounts& counts = *evaluation.result.counts;
  const int64_t classes = counts.num_classes();
  if (classes > kMostClassesShown) return;
  const std::string corner = "truth \\ prediction";
  size_t width = 3, first = corner.size();
  for (int64_t t = 0; t < classes; ++t) {
    const size_t name = columns_taken(name_of_class(evaluation, t));
    width = std::max(width, name);
    first = std::max(first, name);
    for (int64_t p = 0; p < classes; ++p)
      width = std::max(width, fmt::format("{}", counts.at(t, p)).size());
  }
  std::string head = right_aligned(corner, first);
  for (int64_t p = 0; p < classes; ++p)
    head += "  " + right_aligned(name_of_class(evaluation, p), width);
  print_out("{}\n", head);
  for (int64_t t = 0; t < classes; ++t) {
    std::string row = right_aligned(name_of_class(evaluation, t), first);
    for (int64_t p = 0; p < classes; ++p) row += fmt::format("  {:>{}}", counts.at(t, p), width);
    print_out("{}\n", row);
  }
}

void print_classes(const Evaluation& evaluation, const std::vector<Column>& columns) {
  const size_t classes = columns[0].values.size();
  size_t width = 5;
  for (size_t k = 0; k < classes; ++k)
    width = std::max(width, columns_taken(name_of_class(evaluation, k)));
  print_row("class", width, columns, [](const Column& column) { return column.words; });
  for (size_t k = 0; k < classes; ++k)
    print_row(name_of_class(evaluation, k), width, columns,
              [&](const Column& column) { return cell(column.values[k]); });
  print_row("mean", width, columns, [](const Column& column) { return cell(column.mean); });
}

void print_text(const Evaluation& evaluation) {
  print_out("{}: {}\n", counted(evaluation.samples, "sample"), to_string(evaluation.result));
  const std::vector<Column> columns = columns_of(evaluation);
  if (!columns.empty()) print_classes(evaluation, columns);
  if (evaluation.task == ScoredTask::kImageClasses) print_matrix(evaluation);
  if (evaluation.came_back)
    print_out("scores are of the images' own grid{}\n",
              evaluation.result.has_loss ? ", the loss is of the grid that the network sees" : "");
  if (!evaluation.without_loss.empty()) print_out("no loss: {}\n", evaluation.without_loss);
  if (!evaluation.without_surfaces.empty())
    print_out("no distances between outlines: {}\n", evaluation.without_surfaces);
}

nlohmann::ordered_json as_json(const Evaluation& evaluation, const std::string& weights) {
  const ValidationResult& result = evaluation.result;
  nlohmann::ordered_json json{
      {"samples", evaluation.samples}, {"weights", as_utf8(weights)}, {"loss", result.loss}};
  if (evaluation.came_back) json["grid"] = "own";
  if (!evaluation.without_loss.empty()) json["without_loss"] = as_utf8(evaluation.without_loss);
  for (const ScoreName& score : result.names) json[score.name] = result.scores.*score.value;
  const std::vector<Column> columns = columns_of(evaluation);
  if (columns.empty()) return json;
  for (const Column& column : columns) json["means"][column.name] = column.mean;
  for (size_t k = 0; k < columns[0].values.size(); ++k) {
    nlohmann::ordered_json of_class{{"class", k}};
    if (!evaluation.class_names.empty()) of_class["name"] = as_utf8(name_of_class(evaluation, k));
    for (const Column& column : columns) of_class[column.name] = column.values[k];
    json["classes"].push_back(std::move(of_class));
  }
  for (int64_t t = 0; t < result.counts->num_classes(); ++t) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (int64_t p = 0; p < result.counts->num_classes(); ++p)
      row.push_back(result.counts->at(t, p));
    json["confusion"].push_back(std::move(row));
  }
  return json;
}

/// A row for each class, and one for the means.
std::string as_csv(const Evaluation& evaluation) {
  const std::vector<Column> columns = columns_of(evaluation);
  const bool has_names = !evaluation.class_names.empty();
  std::string text = has_names ? "class,name" : "class";
  for (const Column& column : columns) text += "," + column.name;
  const auto add_row = [&](const std::string& first, const auto& value_of) {
    text += "\n" + first;
    for (const Column& column : columns)
      text += std::isnan(value_of(column)) ? "," : fmt::format(",{}", value_of(column));
  };
  for (size_t k = 0; !columns.empty() && k < columns[0].values.size(); ++k)
    add_row(has_names ? fmt::format("{},{}", k, csv_cell(name_of_class(evaluation, k)))
                      : fmt::format("{}", k),
            [k](const Column& column) { return column.values[k]; });
  add_row(has_names ? "mean," : "mean", [](const Column& column) { return column.mean; });
  return text + "\n";
}

int run(Options options) {
  ConfigOptions::OfRun read = options.config.read_of_run();
  TrainConfig& config = read.config;
  options.request.weights = chosen_weights(options.request.weights, read.run);
  if (!read.run.empty() && !is_secondary_process())
    print_error("weights of {}\n", options.request.weights);
  config.data = options.data;
  config.channels_last = config.channels_last || options.channels_last;
  if (!options.window.empty())
    options.request.window = Shape(parse_sizes(options.window, "--window"));
  const AppliedData data = open_applied_data(config, resolve_job(config).graph(), read.run);
  const Evaluation evaluation = evaluate(config, data, options.request);
  if (is_secondary_process()) return kOk;
  const std::string json = json_text(as_json(evaluation, options.request.weights), 2);
  if (!options.output.empty())
    write_file_atomically(options.output,
                          options.output.ends_with(".csv") ? as_csv(evaluation) : json + "\n");
  if (options.json)
    print_out("{}\n", json);
  else
    print_text(evaluation);
  return kOk;
}

}  // namespace evaluate_command

void add_evaluate(CLI::App& app, int* exit_code) {
  using namespace evaluate_command;
  CLI::App* command = app.add_subcommand(
      "evaluate",
      "scores a trained model, or that of a run's folder, on images of any size with targets");
  auto options = std::make_shared<Options>();
  command
      ->add_option(
          "--data", options->data,
          "images and targets: folder:PATH, list:FILE, files:IMAGES,TARGETS or synthetic:...")
      ->required()
      ->group("Files");
  options->config.add_to(*command, ConfigOptions::Keys::kJob);
  command
      ->add_option(
          "--weights", options->request.weights,
          "best or last: the run's checkpoint; a safetensors file; or a checkpoint folder "
          "(default: the run's best, or its last where there was no validation; those of a "
          "model file)")
      ->group("Files");
  command->add_flag("--channels-last", options->channels_last, config_key("--channels-last").help)
      ->group("Files");
  command
      ->add_option("--output", options->output,
                   "file for the scores: all as .json, those of the classes as .csv")
      ->group("Files");
  command
      ->add_option(
          "--tolerance", options->request.tolerance,
          "of the surface Dice, in millimetres, or pixels where the files do not say their "
          "size")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group("Scores");
  command
      ->add_option("--window", options->window,
                   "largest part of an image that is seen at once: 2048x2048 (default: the whole "
                   "image where it fits into memory); changes no score, and leaves out the loss")
      ->group("Scores");
  command
      ->add_option("--scratch-folder", options->request.scratch_folder,
                   "folder, seen by all workers, for outputs on their way to the images' own grid "
                   "(default: the system's for temporary files)")
      ->group("Files");
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
