#include "tessera/lower/rewrite.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/ops/batch_norm.h"
#include "tessera/ops/partial.h"
#include "tessera/ops/relu.h"
#include "tessera/plan/placement.h"

namespace tessera {
namespace {

class Rewriter {
 public:
  Rewriter(const Graph& graph, const Plan& plan)
      : graph_(graph), plan_(plan), placement_(graph, plan), ids_(graph.values().size(), -1) {}

  Graph run() {
    for (const Parameter& parameter : graph_.parameters()) result_.add_parameter(parameter);
    for (ValueId input : graph_.inputs())
      ids_[input] = result_.add_input(graph_.value(input).name, graph_.type(input));
    for (const Node& node : graph_.nodes()) ids_[node.output] = rewritten(node);
    for (ValueId output : graph_.outputs()) result_.mark_output(ids_[output]);
    return std::move(result_);
  }

 private:
  /// The new value that stands for the node's output; -1 where the only reader takes its part over.
  ValueId rewritten(const Node& node) {
    if (is_plain_batch_norm(*node.op) && sole_reader_is(node, [](const Op& op) { return is_relu(op); }))
      return -1;
    if (is_relu(*node.op) && ids_[node.inputs[0]] < 0) return fused_norm_relu(node);
    if (node.op->kind() == "global_average_pool") return pool_by_parts(node);
    if (node.op->kind() == "flatten" && batch_is_small(node) &&
        sole_reader_is(node, [](const Op& op) { return op.kind() == "linear"; }))
      return -1;
    if (node.op->kind() == "linear" && ids_[node.inputs[0]] < 0) return linear_by_parts(node);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(ids_[input]);
    return result_.add_node(node.name, node.op, inputs, node.parameters, node.buffers);
  }

  template <class Predicate>
  bool sole_reader_is(const Node& node, Predicate predicate) const {
    const std::vector<Use>& uses = graph_.value(node.output).uses;
    const auto& outputs = graph_.outputs();
    return uses.size() == 1 && predicate(*graph_.node(uses[0].node).op) &&
           std::find(outputs.begin(), outputs.end(), node.output) == outputs.end();
  }

  const Node& producer_of_input(const Node& node) const {
    return graph_.node(graph_.value(node.inputs[0]).producer);
  }

  ValueId fused_norm_relu(const Node& relu) {
    const Node& norm = producer_of_input(relu);
    return result_.add_node(norm.name, with_relu(*norm.op), {ids_[norm.inputs[0]]}, norm.parameters,
                            norm.buffers);
  }

  std::vector<Box> cells_of(ValueId value) const {
    return Placement::spatial_cells(placement_.layout_of(graph_.type(value)));
  }

  ValueId pool_by_parts(const Node& node) {
    const Shape shape = graph_.type(node.inputs[0]).shape();
    double pixels = 1;
    for (size_t axis = 2; axis < shape.size(); ++axis) pixels *= static_cast<double>(shape[axis]);
    const ValueId parts = result_.add_node(
        node.name + ".partial", std::make_shared<PartialSum>(cells_of(node.inputs[0]), 1.0 / pixels),
        {ids_[node.inputs[0]]});
    return result_.add_node(node.name, std::make_shared<SumParts>(), {parts});
  }

  /// With fewer samples than ranks of a replica, gathering whole maps would leave ranks idle and
  /// send the map; partial products send only their sums.
  bool batch_is_small(const Node& flatten) const {
    const int64_t ranks_per_replica = plan_.num_ranks() / plan_.data;
    return graph_.type(flatten.inputs[0]).batch() / plan_.data < ranks_per_replica;
  }

  ValueId linear_by_parts(const Node& linear) {
    const ValueId image = producer_of_input(linear).inputs[0];
    Shape spatial = graph_.type(image).shape();
    spatial.erase(spatial.begin(), spatial.begin() + 2);
    const int64_t out_features = linear.types.output.channels();
    const ValueId parts = result_.add_node(
        linear.name + ".partial",
        std::make_shared<PartialLinear>(cells_of(image), spatial, out_features), {ids_[image]},
        {linear.parameters[0]});
    const std::vector<ParameterId> bias(linear.parameters.begin() + 1, linear.parameters.end());
    return result_.add_node(linear.name, std::make_shared<SumParts>(), {parts}, bias);
  }

  const Graph& graph_;
  const Plan& plan_;
  Placement placement_;
  std::vector<ValueId> ids_;
  Graph result_;
};

}  // namespace

Graph rewrite(const Graph& graph, const Plan& plan) { return Rewriter(graph, plan).run(); }

}  // namespace tessera
