#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/mean.h"
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

std::string cell(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

void print_row(const std::string& name, const std::vector<Column>& columns,
               const std::function<std::string(const Column&)>& cell_of) {
  std::string row = fmt::format("{:>5}", name);
  for (const Column& column : columns)
    row += fmt::format("  {:>{}}", cell_of(column), std::max<size_t>(6, column.words.size()));
  print_out("{}\n", row);
}

void print_matrix(const ConfusionCounts& counts) {
  const int64_t classes = counts.num_classes();
  if (classes > kMostClassesShown) return;
  size_t width = 3;
  for (int64_t t = 0; t < classes; ++t)
    for (int64_t p = 0; p < classes; ++p)
      width = std::max(width, fmt::format("{}", counts.at(t, p)).size());
  std::string head = "truth \\ prediction";
  for (int64_t p = 0; p < classes; ++p) head += fmt::format("  {:>{}}", p, width);
  print_out("{}\n", head);
  for (int64_t t = 0; t < classes; ++t) {
    std::string row = fmt::format("{:>18}", t);
    for (int64_t p = 0; p < classes; ++p) row += fmt::format("  {:>{}}", counts.at(t, p), width);
    print_out("{}\n", row);
  }
}

void print_text(const Evaluation& evaluation) {
  print_out("{}: {}\n", counted(evaluation.samples, "sample"), to_string(evaluation.result));
  const std::vector<Column> columns = columns_of(evaluation);
  if (columns.empty()) return;
  print_row("class", columns, [](const Column& column) { return column.words; });
  for (size_t k = 0; k < columns[0].values.size(); ++k)
    print_row(fmt::format("{}", k), columns,
              [&](const Column& column) { return cell(column.values[k]); });
  print_row("mean", columns, [](const Column& column) { return cell(column.mean); });
  if (evaluation.task == ScoredTask::kImageClasses) print_matrix(*evaluation.result.counts);
  if (!evaluation.without_surfaces.empty())
    print_out("no distances between outlines: {}\n", evaluation.without_surfaces);
}

nlohmann::ordered_json as_json(const Evaluation& evaluation, const std::string& weights) {
  const ValidationResult& result = evaluation.result;
  nlohmann::ordered_json json{
      {"samples", evaluation.samples}, {"weights", as_utf8(weights)}, {"loss", result.loss}};
  for (const ScoreName& score : result.names) json[score.name] = result.scores.*score.value;
  const std::vector<Column> columns = columns_of(evaluation);
  if (columns.empty()) return json;
  for (const Column& column : columns) json["means"][column.name] = column.mean;
  for (size_t k = 0; k < columns[0].values.size(); ++k) {
    nlohmann::ordered_json of_class{{"class", k}};
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
  std::string text = "class";
  for (const Column& column : columns) text += "," + column.name;
  const auto add_row = [&](const std::string& name, const auto& value_of) {
    text += "\n" + name;
    for (const Column& column : columns)
      text += std::isnan(value_of(column)) ? "," : fmt::format(",{}", value_of(column));
  };
  for (size_t k = 0; !columns.empty() && k < columns[0].values.size(); ++k)
    add_row(fmt::format("{}", k), [k](const Column& column) { return column.values[k]; });
  add_row("mean", [](const Column& column) { return column.mean; });
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
  const std::shared_ptr<const Dataset> data =
      open_applied_data(config, resolve_job(config).graph(), read.run);
  const Evaluation evaluation = evaluate(config, *data, options.request);
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
  command->add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli
