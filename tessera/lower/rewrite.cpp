#include "tessera/lower/rewrite.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/graph/transform.h"
#include "tessera/lower/chunks.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/partial.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/plan/placement.h"

namespace tessera {
namespace {

class Rewriter {
 public:
  Rewriter(const Graph& graph, const Plan& plan)
      : graph_(graph),
        plan_(plan),
        placement_(graph, plan),
        stages_(stages_of_nodes(graph, plan)) {}

  Graph run() {
    return transform(graph_,
                     [this](Graph& result, const Node& node, const std::vector<ValueId>& inputs) {
                       result_ = &result;
                       return replacement(node, inputs);
                     });
  }

 private:
  /// A node whose only reader does its work, too, is left out; that reader finds no input (-1) and
  /// reads the input of the node that was left out.
  std::optional<ValueId> replacement(const Node& node, const std::vector<ValueId>& inputs) {
    if (fuses_into_reader(node) && (node.op->kind() != "flatten" || batch_is_small(node)))
      return leave_out(node, inputs);
    if (is_relu(*node.op) && inputs[0] < 0) return fused_norm_relu(node);
    if (const std::optional<double> scale = whole_space_scale(*node.op, node.types))
      return reduce_by_parts(node, inputs[0], *scale);
    if (node.op->kind() == "linear" && inputs[0] < 0) return linear_by_parts(node);
    return std::nullopt;
  }

  ValueId leave_out(const Node& node, const std::vector<ValueId>& inputs) {
    inputs_of_left_out_[node.output] = inputs[0];
    return -1;
  }

  bool fuses_into_reader(const Node& node) const {
    const std::optional<NodeId> reader = fusing_reader(graph_, graph_.value(node.output).producer);
    return reader && stages_[*reader] == stage(node);
  }

  const Node& producer_of_input(const Node& node) const {
    return graph_.node(graph_.value(node.inputs[0]).producer);
  }

  ValueId fused_norm_relu(const Node& relu) {
    const Node& norm = producer_of_input(relu);
    return result_->add_node(norm.name, with_relu(*norm.op), {inputs_of_left_out_.at(norm.output)},
                             norm.parameters, norm.buffers);
  }

  int stage(const Node& node) const { return stages_[graph_.value(node.output).producer]; }

  /// The cells of a value as the stage of one of its readers would cut it.
  std::vector<Box> cells_of(ValueId value, const Node& reader) const {
    return Placement::spatial_cells(placement_.layout_of(graph_.type(value), stage(reader)));
  }

  ValueId reduce_by_parts(const Node& node, ValueId image, double scale) {
    const ValueId parts = result_->add_node(
        partial_name(node), std::make_shared<PartialSum>(cells_of(node.inputs[0], node), scale),
        {image});
    const std::vector<Axis>& axes = node.types.output.axes;
    const std::vector<Axis> kept(axes.begin() + 2, axes.end());
    return result_->add_node(node.name, std::make_shared<SumParts>(kept), {parts});
  }

  /// With fewer samples than ranks of a replica, gathering whole maps would leave ranks idle and
  /// send the map; partial products send only their sums.
  bool batch_is_small(const Node& flatten) const {
    const int64_t samples =
        graph_.type(flatten.inputs[0]).batch() / (plan_.data * plan_.micro_batches);
    return samples < plan_.ranks_of_stage(stage(flatten));
  }

  ValueId linear_by_parts(const Node& linear) {
    const ValueId image = producer_of_input(linear).inputs[0];
    Shape spatial = graph_.type(image).shape();
    spatial.erase(spatial.begin(), spatial.begin() + 2);
    const int64_t out_features = linear.types.output.channels();
    const ValueId parts = result_->add_node(
        partial_name(linear),
        std::make_shared<PartialLinear>(cells_of(image, linear), spatial, out_features),
        {inputs_of_left_out_.at(linear.inputs[0])}, {linear.parameters[0]});
    const std::vector<ParameterId> bias(linear.parameters.begin() + 1, linear.parameters.end());
    return result_->add_node(linear.name, std::make_shared<SumParts>(), {parts}, bias);
  }

  static std::string partial_name(const Node& node) {
    return fmt::format("{}{}", node.name, kPartialSuffix);
  }

  const Graph& graph_;
  const Plan& plan_;
  Placement placement_;
  std::vector<int> stages_;                        // per node
  Graph* result_ = nullptr;                        // the graph that is being made
  std::map<ValueId, ValueId> inputs_of_left_out_;  // by the left-out node's old output
};

}  // namespace

std::optional<NodeId> fusing_reader(const Graph& graph, NodeId node) {
  const Op& op = *graph.node(node).op;
  const ValueId output = graph.node(node).output;
  const std::vector<Use>& uses = graph.value(output).uses;
  const std::vector<ValueId>& outputs = graph.outputs();
  if (uses.size() != 1 || std::find(outputs.begin(), outputs.end(), output) != outputs.end())
    return std::nullopt;
  const Op& reader = *graph.node(uses[0].node).op;
  const bool fuses = (is_plain_batch_norm(op) && is_relu(reader)) ||
                     (op.kind() == "flatten" && reader.kind() == "linear");
  return fuses ? std::optional(uses[0].node) : std::nullopt;
}

Graph rewrite(const Graph& graph, const Plan& plan) { return Rewriter(graph, plan).run(); }

}  // namespace tessera
