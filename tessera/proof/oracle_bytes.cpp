#include <algorithm>

#include "tessera/graph/number_type.h"
#include "tessera/lower/multigrid.h"
#include "tessera/proof/oracle.h"

namespace tessera {
namespace {

int64_t bytes_of(const ValueType& type, at::ScalarType real) {
  const auto each = type.element == Element::kReal ? at::elementSize(real) : sizeof(int64_t);
  return Box::whole(type.shape()).volume() * static_cast<int64_t>(each);
}

/// What ATen takes to run a node forward or backward: a convolution lays out the pixels that each
/// output reads, and backward has the gradients of output and inputs.
int64_t workspace_bytes(const Node& node, at::ScalarType real) {
  const ValueType& out = node.types.output;
  int64_t bytes = bytes_of(out, real);
  for (const ValueType& input : node.types.inputs) bytes += bytes_of(input, real);
  if (node.parameters.empty() || out.shape().size() < 3) return bytes;
  const double products = node.op->flops(Box::whole(out.shape()), node.types) / 2;
  const auto columns = static_cast<int64_t>(products / static_cast<double>(out.shape()[1]));
  return bytes + columns * static_cast<int64_t>(at::elementSize(real));
}

}  // namespace

OracleBytes oracle_bytes(const Graph& graph, const VerifyOptions& options) {
  const at::ScalarType real = wide(options.real);
  const auto each = static_cast<int64_t>(at::elementSize(real));
  int64_t all = 0, trainable = 0;
  for (const Parameter& parameter : graph.parameters()) {
    all += each * parameter.numel();
    if (parameter.role == ParameterRole::kTrainable) trainable += each * parameter.numel();
  }
  OracleBytes bytes;
  bytes.weights = all + trainable * (1 + optimiser_of(options)->state_copies());
  bytes.kept = (options.keep_gradients ? trainable : 0) + (options.keep_parameters ? all : 0);
  const Graph solved = solve_by_multigrid(graph, options.plan);
  for (const Value& value : solved.values()) bytes.values += bytes_of(value.type, real);
  int64_t workspace = 0;
  for (const Node& node : solved.nodes())
    workspace = std::max(workspace, workspace_bytes(node, real));
  bytes.values += workspace;
  return bytes;
}

}  // namespace tessera
