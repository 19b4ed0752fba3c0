#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/cli/command.h"
#include "tessera/cli/file_options.h"
#include "tessera/config/config_keys.h"
#include "tessera/files/atomic_file.h"
#include "tessera/files/json.h"
#include "tessera/inspect/dot.h"
#include "tessera/inspect/svg.h"
#include "tessera/inspect/table.h"
#include "tessera/inspect/text.h"
#include "tessera/job/model_source.h"
#include "tessera/lower/chunks.h"

namespace tessera::cli {
namespace inspect_command {

const std::map<std::string, at::ScalarType> kNumbers{
    {"float32", at::kFloat}, {"float64", at::kDouble}, {"bf16", at::kBFloat16}};

struct Options {
  ModelSource source;
  std::string dtype = "float32";
  std::string dot_file;
  std::string svg_file;
  std::string plan_file;
  std::string sort = "order";
  int64_t max_operators = 0;
  bool json = false;
};

SortBy sort_by(const std::string& name) {
  static const std::map<std::string, SortBy> names{{"order", SortBy::kOrder},
                                                   {"flops", SortBy::kFlops},
                                                   {"bytes", SortBy::kBytes},
                                                   {"parameters", SortBy::kParameters}};
  return names.at(name);
}

/// Every operator in the colour of its stage.
void colour_by_stage(const Graph& graph, const std::string& plan_file, DrawingOptions* drawing) {
  static const std::vector<std::string> colours{"#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99",
                                                "#ffff99", "#cab2d6", "#e5c494", "#8dd3c7"};
  const Plan plan = read_plan(plan_file);
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  std::map<std::string, std::string> colour_of;
  for (size_t id = 0; id < stages.size(); ++id)
    colour_of[graph.nodes()[id].name] = colours[stages[id] % colours.size()];
  drawing->colour_of = [colour_of](const Node& node) { return colour_of.at(node.name); };
  for (int stage = 0; stage < plan.num_stages(); ++stage)
    drawing->legend.push_back({fmt::format("stage {}", stage), colours[stage % colours.size()]});
}

DrawingOptions drawing_options(const Options& options, const Graph& graph,
                               const GraphProfile& profiled) {
  DrawingOptions drawing;
  drawing.title = options.source.model;
  drawing.subtitle = fmt::format(
      "input {}, {}, {} parameters, {} forward", to_string(graph.type(graph.inputs()[0])),
      counted(std::ssize(graph.nodes()), "operator"),
      format_count(static_cast<double>(profiled.parameters)), format_flops(profiled.flops));
  if (!options.plan_file.empty()) colour_by_stage(graph, options.plan_file, &drawing);
  return drawing;
}

void write_drawings(const Options& options, const Graph& graph, const GraphProfile& profiled) {
  const DrawingOptions drawing = drawing_options(options, graph, profiled);
  if (!options.dot_file.empty()) write_file_atomically(options.dot_file, to_dot(graph, drawing));
  if (!options.svg_file.empty()) write_file_atomically(options.svg_file, to_svg(graph, drawing));
}

void print_json(const Options& options, const Graph& graph, const GraphProfile& profiled,
                const TableOptions& table) {
  nlohmann::json json = nlohmann::json::parse(to_json(profiled, table));
  json["model"] = options.source.model;
  json["input"] = graph.type(graph.inputs()[0]).shape();
  print_out("{}\n", json_text(json));
}

int run(const Options& options) {
  const Graph graph = load_model(options.source).graph;
  const GraphProfile profiled = profile(graph, kNumbers.at(options.dtype));
  write_drawings(options, graph, profiled);
  const TableOptions table{sort_by(options.sort), options.max_operators};
  if (options.json) {
    print_json(options, graph, profiled, table);
  } else {
    print_out("{}, input {}, {}\n\n{}", printable(options.source.model),
              to_string(graph.type(graph.inputs()[0])), options.dtype, to_table(profiled, table));
  }
  return kOk;
}

void add_options(CLI::App& command, Options* options) {
  command
      .add_option("MODEL", options->source.model,
                  "zoo model with options: unet2d:base=16,classes=4; or a file of "
                  "torch.jit.script or torch.jit.trace: net.pt")
      ->required()
      ->group("Model");
  command
      .add_option("--input", options->source.input,
                  "batch x channels x spatial sizes, in pixels: 1x3x512x512 (default: the model's "
                  "own)")
      ->group("Model");
  command.add_flag("--trust-model", options->source.trusted, config_key("--trust-model").help);
  command.add_option("--dtype", options->dtype, "float32, float64 or bf16: the size of a number")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float64", "bf16"}))
      ->group("Model");
  command
      .add_option("--sort", options->sort,
                  "order (of the graph), or the largest first: flops, bytes (of the output) or "
                  "parameters")
      ->capture_default_str()
      ->check(CLI::IsMember({"order", "flops", "bytes", "parameters"}))
      ->group("Output");
  command
      .add_option("--operators", options->max_operators,
                  "show only the N largest, by --sort (for order by FLOPs); 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group("Output");
  command.add_option("--dot", options->dot_file, "write the graph for Graphviz to this file")
      ->group("Output");
  command.add_option("--svg", options->svg_file, "draw the graph into this file")->group("Output");
  command
      .add_option("--plan", options->plan_file,
                  "JSON file with a placement (see `tessera plan --write-plan`): drawings show "
                  "each operator in the colour of its stage")
      ->group("Output");
  command.add_flag("--json", options->json, "one JSON object on stdout")->group("Output");
}

}  // namespace inspect_command

void add_inspect(CLI::App& app, int* exit_code) {
  using namespace inspect_command;
  CLI::App* command = app.add_subcommand(
      "inspect", "a model's operators: shapes, parameters, FLOPs, bytes, fields, halos; drawings");
  auto options = std::make_shared<Options>();
  add_options(*command, options.get());
  command->callback([command, options, exit_code] {
    check_file_options(command->get_name(),
                       [&](const std::string& option) { return given_text(*command, option); });
    *exit_code = run(*options);
  });
}

}  // namespace tessera::cli
