#include "tessera/job/model_source.h"

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/export/script_file.h"
#include "tessera/graph/domains.h"
#include "tessera/import/import.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

WithoutFilter without_filter(bool trusted) {
  return trusted ? WithoutFilter::kGoOn : WithoutFilter::kRefuse;
}

/// Class scores need two channels or more; one channel is a yes or no.
std::string fitting_loss(const Graph& graph) {
  const ValueType& output = graph.type(graph.outputs()[0]);
  return output.num_axes() >= 2 && output.channels() > 1 ? "cross_entropy" : "bce";
}

bool is_module_file(const std::string& path) { return path.ends_with(".pt"); }

void check_input_of_files(const std::string& text, const Shape& input) {
  if (input.empty())
    throw_error<InvalidInput>(
        "[--input] a model file does not say the size of its images; give batch x channels x "
        "spatial sizes: --input 1x3x512x512");
  if (input.size() < 3 || input.size() > 5)
    throw_error<InvalidInput>("[--input] {} has {}; give batch x channels x 1 to 3 spatial sizes",
                              text, counted(std::ssize(input), "axis", "axes"));
}

LoadedModel from_file(const ModelSource& source, const Shape& input) {
  check_input_of_files(source.input, input);
  ImportedModel imported = import_torchscript(source.model, input, without_filter(source.trusted));
  add_losses(imported.graph, loss_options(imported.graph, source.loss, source.output_weights));
  return {.graph = std::move(imported.graph),
          .name = source.model,
          .file = source.model,
          .has_weights = true,
          .trusted = source.trusted,
          .ties = std::move(imported.ties),
          .counters = std::move(imported.counters)};
}

LoadedModel from_modules(const ModelSource& source, const Shape& input) {
  check_input_of_files(source.input, input);
  const auto add_task_losses = [&](Graph& graph) {
    add_losses(graph, loss_options(graph, source.loss, source.output_weights));
  };
  DomainModel model = build_from_modules(source.model, source.modules, input, add_task_losses,
                                         without_filter(source.trusted));
  return {.graph = std::move(model.graph),
          .name = source.model,
          .file = {},
          .has_weights = true,
          .trusted = source.trusted,
          .ties = std::move(model.ties),
          .counters = {}};
}

LoadedModel from_zoo(const ModelSource& source, const Shape& input) {
  LoadedModel loaded;
  loaded.graph = build_model(source.model, input);
  loaded.name = source.model;
  if (source.loss.empty() && source.output_weights.empty()) return loaded;
  loaded.graph = without_labelled_losses(loaded.graph);
  if (loaded.graph.outputs().size() > 1 && source.output_weights.empty())
    throw_error<InvalidInput>(
        "[--loss] {} has {} outputs; say with --output-weights what the loss of each counts, such "
        "as 1,0.4",
        source.model, loaded.graph.outputs().size());
  add_losses(loaded.graph, loss_options(loaded.graph, source.loss, source.output_weights));
  return loaded;
}

}  // namespace

LoadedModel load_model(const ModelSource& source) {
  const Shape input = source.input.empty() ? Shape{} : Shape(parse_sizes(source.input, "--input"));
  if (source.modules.any()) return from_modules(source, input);
  return names_a_file(source.model) ? from_file(source, input) : from_zoo(source, input);
}

LossOptions loss_options(const Graph& graph, const std::string& loss,
                         const std::string& output_weights) {
  LossOptions losses;
  losses.spec = loss.empty() ? fitting_loss(graph) : loss;
  if (!output_weights.empty())
    losses.output_weights = parse_reals(output_weights, "--output-weights");
  return losses;
}

void save_model_weights(const std::string& path, const LoadedModel& model,
                        const std::vector<at::Tensor>& values, int64_t steps) {
  if (!is_module_file(path))
    save_weights(path, model.graph, values, model.ties);
  else if (model.file.empty())
    export_torchscript(path, model.graph, values);
  else
    save_torchscript(model.file, path, model.graph, model.counters, values, steps,
                     without_filter(model.trusted));
}

void check_weights_path(const std::string& path, const LoadedModel& model) {
  if (is_module_file(path) && model.file.empty()) check_exportable(model.graph);
}

}  // namespace tessera
