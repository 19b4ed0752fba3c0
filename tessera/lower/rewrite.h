#pragma once
// Changes to the graph before it is placed, each of which keeps every number: batch norm and ReLU
// become one operator, and reductions over a space that is cut become partial results per cell and
// their sum.
//
//   spatial sum or mean, all axes  →  partial_sum → sum_parts
//   flatten → linear, small batch  →  partial_linear → sum_parts
//
// Nodes are fused where one stage runs both. Parameters, inputs and outputs keep their order.

#include <optional>
#include <string_view>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Ends the name of a node that was made beside the one of that name, on the same stage.
constexpr std::string_view kPartialSuffix = ".partial";

Graph rewrite(const Graph& graph, const Plan& plan);

/// The reader of a node's output into which the rewrite may take the node over, if one stage runs
/// both: the ReLU after a batch norm, the linear layer after a flatten. None where others read the
/// output, too. (A flatten is only taken over where the batch is small.)
std::optional<NodeId> fusing_reader(const Graph& graph, NodeId node);

}  // namespace tessera
