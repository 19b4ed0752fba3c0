#pragma once
// The derivative of an operator at a point, as an operator on changes of its inputs. Here all
// changes are zero: nothing is ever computed forwards, and backward of it is that of the operator,
// with the gradient that arrives here. So a graph of such operators is a program for gradients
// alone: written from its end to its beginning, backward runs it from its beginning to its end.
//
//     change of x ──► [derivative of op at x] ──► change of y       forwards: zeros, not stored
//     w ◄──────────── [input gradient of op]  ◄── gradient w        backwards
//
// The adjoint sweeps of a multigrid solve are made of these.

#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// The derivative of the operator of `node`. Its inputs are a change for each input of the node,
/// then what inputs_of_point() names.
std::shared_ptr<const Op> linearised(const Node& node);

/// The values of the graph of `node` by which backward finds the point: its inputs, and its output
/// where backward reads that. None for operators that are linear.
std::vector<ValueId> inputs_of_point(const Node& node);

/// The operator of which `op` is the derivative; null where it is none.
const Op* linearised_operator(const Op& op);

/// Whether backward of the operator can run at a point that another node has computed: every input
/// has a gradient. What forward saves besides (max pooling's choices) is found at the point again.
bool can_be_linearised(const Node& node);

}  // namespace tessera
