#include "tessera/job/domain_modules.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/append.h"
#include "tessera/import/import.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/domains.h"

namespace tessera {
namespace {

/// Files as graphs, each read once for every shape that it is given.
class Modules {
 public:
  Modules(WithoutFilter without_filter, std::map<std::string, std::string>* ties)
      : without_filter_(without_filter), ties_(ties) {}

  /// What the module makes of `input`, with `prefix` before its names.
  std::vector<ValueId> apply(Graph& graph, const std::string& file, ValueId input,
                             const std::string& prefix) {
    const ImportedModel& module = read(file, graph.type(input).shape());
    for (const auto& [name, first] : module.ties) (*ties_)[prefix + name] = prefix + first;
    return append(graph, module.graph, input, prefix);
  }

  /// The same, of a module that returns one tensor.
  ValueId apply_one(Graph& graph, const std::string& option, const std::string& file, ValueId input,
                    const std::string& prefix) {
    const std::vector<ValueId> outputs = apply(graph, file, input, prefix);
    if (outputs.size() != 1)
      throw_error<InvalidInput>("[{}] forward() of {} returns {}; return one", option, file,
                                counted(std::ssize(outputs), "tensor"));
    return outputs[0];
  }

 private:
  const ImportedModel& read(const std::string& file, const Shape& shape) {
    const auto key = std::pair(file, shape);
    if (const auto found = read_.find(key); found != read_.end()) return found->second;
    return read_.emplace(key, import_torchscript(file, shape, without_filter_)).first->second;
  }

  WithoutFilter without_filter_;
  std::map<std::string, std::string>* ties_;
  std::map<std::pair<std::string, Shape>, ImportedModel> read_;
};

/// A code has a row for each image and features, which may lie in space.
void check_code(const Graph& graph, ValueId code, ValueId image) {
  const ValueType& type = graph.type(code);
  bool fits = type.num_axes() >= 2 && type.axes[0].kind == AxisKind::kBatch &&
              type.axes[1].kind == AxisKind::kChannel && type.batch() == graph.type(image).batch();
  for (int axis = 2; axis < type.num_axes(); ++axis)
    fits = fits && type.axes[axis].kind == AxisKind::kSpatial;
  if (!fits)
    throw_error<InvalidInput>(
        "[--encoder] makes {} of images {}; a code is batch x features, or batch x channels x "
        "space",
        to_string(type), to_string(graph.type(image)));
}

DomainParts parts_of(const DomainModules& files, Modules& modules,
                     const std::function<void(Graph&)>& add_task_losses) {
  DomainParts parts;
  parts.encode = [&](Graph& graph, ValueId image) {
    const ValueId code = modules.apply_one(graph, "--encoder", files.encoder, image, "shared.");
    check_code(graph, code, image);
    const bool in_space = graph.type(code).num_spatial() > 0;
    return DomainCodes{image, code, in_space ? global_average_pool(graph, code) : code};
  };
  parts.solve = [&](Graph& graph, const DomainCodes& codes) {
    for (ValueId output : modules.apply(graph, files.head, codes.shared, "head."))
      graph.mark_output(output);
    add_task_losses(graph);
  };
  parts.encode_private = [&](Graph& graph, ValueId image, const std::string& prefix) {
    return modules.apply_one(graph, "--private", files.private_encoder, image, prefix);
  };
  parts.decode = [&](Graph& graph, ValueId code, const DomainCodes&) {
    return modules.apply_one(graph, "--decoder", files.decoder, code, "decoder.");
  };
  return parts;
}

void check_all_given(const DomainModules& modules) {
  std::vector<std::string> missing;
  const auto look = [&](const char* option, const std::string& file) {
    if (file.empty()) missing.emplace_back(option);
  };
  look("--encoder", modules.encoder);
  look("--private", modules.private_encoder);
  look("--decoder", modules.decoder);
  look("--head", modules.head);
  if (!missing.empty())
    throw_error<InvalidInput>(
        "[model] a network out of modules needs --encoder, --private, --decoder and --head, and {} "
        "{} missing; give all four",
        joined(missing, " and "), missing.size() == 1 ? "is" : "are");
}

/// The options of `dsn` that are not about its own parts.
ModelOptions read_options(const std::string& model) {
  const size_t colon = std::min(model.find(':'), model.size());
  if (model.substr(0, colon) != "dsn")
    throw_error<InvalidInput>(
        "[MODEL] {} does not take --encoder, --private, --decoder and --head; write dsn, with the "
        "options of domains and losses: dsn:targets=2",
        model);
  return {"dsn", colon + 1 < model.size() ? model.substr(colon + 1) : "",
          with_separation(with_domains({}, kSeparationGamma))};
}

}  // namespace

bool DomainModules::any() const {
  return !(encoder.empty() && private_encoder.empty() && decoder.empty() && head.empty());
}

DomainModel build_from_modules(const std::string& model, const DomainModules& files,
                               const Shape& input,
                               const std::function<void(Graph&)>& add_task_losses,
                               WithoutFilter without_filter) {
  const ModelOptions options = read_options(model);
  check_all_given(files);
  DomainModel result;
  Modules modules(without_filter, &result.ties);
  result.graph = build_domains(options, input, parts_of(files, modules, add_task_losses));
  return result;
}

}  // namespace tessera
