#pragma once
// Copies a graph node by node and lets the caller put something else in a node's place. Parameters,
// inputs and outputs keep their order; value ids change.
//
// Example: a graph without its dropouts
//   transform(graph, [](Graph&, const Node& node, const std::vector<ValueId>& inputs) {
//     return node.op->kind() == "dropout" ? std::optional(inputs[0]) : std::nullopt;
//   });

#include <functional>
#include <optional>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Gets the graph that is being made, a node of the old one, and the new values that stand for its
/// inputs. Gives the new value that stands for its output: -1 where nothing does, none for a plain
/// copy.
using ReplaceNode =
    std::function<std::optional<ValueId>(Graph&, const Node&, const std::vector<ValueId>&)>;

/// What becomes of inputs that nothing reads.
enum class UnreadInputs { kKeep, kDrop };

Graph transform(const Graph& graph, const ReplaceNode& replace,
                UnreadInputs unread = UnreadInputs::kKeep);

/// The same network for batches of another size. Throws InvalidInput where an operator works for
/// one size only.
Graph with_batch(const Graph& graph, int64_t batch);

/// Trainable parameters become frozen where `chosen` says so: no gradient, no update. Running
/// statistics are no weights and go on as before.
Graph with_frozen(const Graph& graph, const std::function<bool(const Parameter&)>& chosen);

/// Keeps the nodes that an output depends on, or a loss where losses are kept, and norms, because
/// their running statistics are results too. Without losses, targets are no longer inputs, nor are
/// images that no output depends on.
/// Parameters that no node reads any more are frozen.
enum class Losses { kKeep, kDrop };
Graph prune(const Graph& graph, Losses losses);

}  // namespace tessera
