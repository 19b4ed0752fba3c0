#include "tessera/export/script_source.h"

#include <cctype>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/script.h"
#include "tessera/ops/shape/pad.h"

namespace tessera {
namespace {

/// An attribute of nested modules, whatever its name looks like: "features.0.weight".
std::string attribute(const std::string& dotted_name) {
  std::string place = "self";
  for (const std::string& part : split_text(dotted_name, '.'))
    place = fmt::format("getattr({}, \"{}\")", place, part);
  return place;
}

class SourceWriter {
 public:
  explicit SourceWriter(const Graph& graph) : graph_(graph), variables_(graph.values().size()) {}

  ScriptSource write() && {
    if (graph_.inputs().size() != 1)
      throw_error<Unsupported>("[export] the network has {}; a file for PyTorch takes one image",
                               counted(std::ssize(graph_.inputs()), "input"));
    if (!graph_.derivations().empty())
      throw_error<Unsupported>(
          "[export] {} is computed from other weights, which has no form in a file for PyTorch",
          graph_.parameters()[graph_.derivations()[0].result].name);
    variables_[graph_.inputs()[0]] = "image";
    source_.forward = "def forward(self, image):\n";
    for (const Node& node : graph_.nodes()) write_node(node);
    std::vector<std::string> outputs;
    for (ValueId output : graph_.outputs()) outputs.push_back(variables_[output]);
    source_.forward += fmt::format("  return {}\n", joined(outputs));
    return std::move(source_);
  }

 private:
  void write_node(const Node& node) {
    const SizeRule& rule = graph_.value(node.output).size_rule;
    const bool is_padded = rule.like >= 0 && rule.by == SizeRule::By::kPadding;
    ScriptArgs args{.types = &node.types,
                    .inputs = {},
                    .parameters = attributes(node.parameters),
                    .buffers = attributes(node.buffers),
                    .size = is_padded ? std::vector<std::string>() : size_by(rule),
                    .training = [&] {
                      source_.modules.insert(node.name);
                      return attribute(node.name + ".training");
                    }};
    for (ValueId input : node.inputs) args.inputs.push_back(variables_[input]);
    const std::optional<std::string> expression = node.op->script(args);
    if (!expression)
      throw_error<Unsupported>(
          "[{}] {}{} has no form in a file for PyTorch; save the weights to a name that ends in "
          ".safetensors",
          node.name, node.op->kind(),
          node.op->settings().empty() ? "" : " (" + node.op->settings() + ")");
    const std::string variable = variables_[node.output] = new_variable(node.name);
    add_line(variable, *expression);
    if (is_padded) add_line(variable, padded_script(variable, size_by(rule), PadWhere::kEnd));
  }

  void add_line(const std::string& variable, const std::string& expression) {
    source_.forward += fmt::format("  {} = {}\n", variable, expression);
  }

  std::vector<std::string> attributes(const std::vector<ParameterId>& parameters) const {
    std::vector<std::string> places;
    for (ParameterId id : parameters) places.push_back(attribute(graph_.parameters()[id].name));
    return places;
  }

  /// The spatial sizes that the rule says.
  std::vector<std::string> size_by(const SizeRule& rule) const {
    std::vector<std::string> sizes;
    if (rule.like < 0) return sizes;
    const ValueType& type = graph_.type(rule.like);
    for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis)
      sizes.push_back((rule.factor == 1 ? "" : fmt::format("{} * ", rule.factor)) +
                      fmt::format("{}.size({})", variables_[rule.like], axis));
    return sizes;
  }

  /// "enc1.conv1" → "enc1_conv1_out", which is no word of the language.
  std::string new_variable(const std::string& name) {
    std::string plain;
    for (char letter : name)
      plain += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
    if (plain.empty() || std::isdigit(static_cast<unsigned char>(plain[0]))) plain = "_" + plain;
    plain += "_out";
    std::string variable = plain;
    for (int number = 2; !names_.insert(variable).second; ++number)
      variable = fmt::format("{}_{}", plain, number);
    return variable;
  }

  const Graph& graph_;
  ScriptSource source_;
  std::vector<std::string> variables_;  // of the values so far
  std::set<std::string> names_;
};

}  // namespace

ScriptSource script_source(const Graph& graph) { return SourceWriter(graph).write(); }

}  // namespace tessera
