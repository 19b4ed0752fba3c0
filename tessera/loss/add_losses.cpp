#include "tessera/loss/add_losses.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/ops/shape/resize_labels.h"

namespace tessera {
namespace {

Element target_element(const LossSpec& spec, const std::string& text) {
  const LossTerm *labels = nullptr, *real = nullptr;
  for (const LossTerm& term : spec.terms) {
    if (term.target == TargetKind::kLabels) labels = &term;
    if (term.target == TargetKind::kReal) real = &term;
  }
  if (labels && real)
    throw_error<InvalidInput>(
        "[loss] '{}': {} needs labels and {} real targets; use terms of one kind", text,
        labels->name, real->name);
  return real ? Element::kReal : Element::kIndex;
}

/// Makes the targets of the outputs, and each only once.
class Targets {
 public:
  Targets(Graph& graph, Element element) : graph_(graph), element_(element) {}

  ValueId of_output(size_t index) {
    const ValueId prediction = graph_.outputs()[index];
    const ValueType& type = graph_.type(prediction);
    Shape shape = type.shape();
    if (element_ == Element::kIndex && shape.size() > 1) shape.erase(shape.begin() + 1);
    for (ValueId made : made_)
      if (graph_.type(made).shape() == shape) return made;
    made_.push_back(make(prediction, shape, index));
    return made_.back();
  }

 private:
  ValueId make(ValueId prediction, const Shape& shape, size_t index) {
    const std::string name = index == 0 ? "target" : fmt::format("target_{}", index);
    if (element_ == Element::kReal) return add_real_target(graph_, prediction, name);
    if (index > 0 && is_resized(shape, graph_.type(made_[0]).shape()))
      return resize_labels(graph_, made_[0], name, {shape.begin() + 1, shape.end()});
    return add_target(graph_, prediction, name);
  }

  /// Whether labels of one shape are those of the other at another spatial size.
  static bool is_resized(const Shape& shape, const Shape& from) {
    return shape.size() == from.size() && shape.size() > 1 && shape[0] == from[0];
  }

  Graph& graph_;
  Element element_;
  std::vector<ValueId> made_;  // the first output's first
};

/// Adds the node of a term. One operator for each kind of options.
struct AddTerm {
  Graph& graph;
  ValueId x;
  ValueId target;
  const std::string& name;

  void operator()(const CrossEntropyOptions& o) const { cross_entropy(graph, x, target, name, o); }
  void operator()(const BinaryCrossEntropyOptions& o) const {
    binary_cross_entropy(graph, x, target, name, o);
  }
  void operator()(const DiceOptions& o) const { dice(graph, x, target, name, o); }
  void operator()(const FocalOptions& o) const { focal(graph, x, target, name, o); }
  void operator()(const MeanSquaredErrorOptions& o) const {
    mean_squared_error(graph, x, target, name, o);
  }
  void operator()(const MeanAbsoluteErrorOptions& o) const {
    mean_absolute_error(graph, x, target, name, o);
  }
  void operator()(const SmoothL1Options& o) const { smooth_l1(graph, x, target, name, o); }
  void operator()(const HuberOptions& o) const { huber(graph, x, target, name, o); }
};

void set_class_weights(LossTerm& term, const std::vector<double>& weights) {
  std::visit(
      [&](auto& options) {
        if constexpr (requires { options.class_weights; }) options.class_weights = weights;
      },
      term.options);
}

void add_term(Graph& graph, LossTerm term, ValueId prediction, ValueId target,
              const std::string& name, double output_weight) {
  const bool labels = graph.type(target).element == Element::kIndex;
  if (term.activation_by_target && labels && graph.type(prediction).channels() > 1)
    std::get<DiceOptions>(term.options).activation = DiceOptions::Activation::kSoftmax;
  std::visit([&](auto& options) { options.weight *= output_weight; }, term.options);
  std::visit(AddTerm{graph, prediction, target, name}, term.options);
}

}  // namespace

void add_losses(Graph& graph, const LossOptions& options) {
  LossSpec spec = parse_loss(options.spec);
  for (LossTerm& term : spec.terms)
    if (term.weights_by_labels) set_class_weights(term, options.class_weights);
  const std::vector<ValueId> outputs = graph.outputs();
  if (outputs.empty())
    throw_error<InvalidInput>("[loss] the graph has no output to compare with a target");
  if (!options.output_weights.empty() && options.output_weights.size() != outputs.size())
    throw_error<InvalidInput>("[loss] {} for {}; give one each, or none",
                              counted(std::ssize(options.output_weights), "output weight"),
                              counted(std::ssize(outputs), "output"));
  Targets targets(graph, target_element(spec, options.spec));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId target = targets.of_output(i);
    const double weight = options.output_weights.empty() ? 1 : options.output_weights[i];
    for (const LossTerm& term : spec.terms) {
      std::string name = i == 0 ? "loss" : fmt::format("loss_{}", i);
      if (&term != &spec.terms.front()) name += "_" + term.name;
      add_term(graph, term, outputs[i], target, name, weight);
    }
  }
}

}  // namespace tessera
