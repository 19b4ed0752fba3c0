#pragma once
// Changes to the graph before it is placed: a list of named passes, which run in its order. Each
// keeps every number, but for multigrid, which the plan asks for. Parameters, inputs and outputs
// keep their order, too.
//
// Example: what a network is without its fused norms
//   rewrite(graph, plan, {"fuse-norm-relu"});

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Ends the name of a node that was made beside the one of that name, on the same stage.
constexpr std::string_view kPartialSuffix = ".partial";

struct Rewrite {
  enum class Kind {
    kOptional,
    kRequired,  // what it replaces has no kernels, or is not what the plan asks for
  };
  std::string name;
  std::string what;  // it does, in a sentence
  Kind kind = Kind::kOptional;
  Graph (*apply)(const Graph& graph, const Plan& plan) = nullptr;
};

/// All passes, in the order in which they run.
const std::vector<Rewrite>& rewrites();

/// Runs all passes but those named in `without`. Throws InvalidInput, with the legal names, where
/// there is no such pass, or where the network could not run without it.
Graph rewrite(const Graph& graph, const Plan& plan, const std::vector<std::string>& without = {});

/// The reader of a node's output into which a pass may take the node over, if one stage runs both:
/// the sum or the ReLU after a norm, the linear layer after a flatten. None where others read the
/// output, too. (A flatten is only taken over where the batch is small.)
std::optional<NodeId> fusing_reader(const Graph& graph, NodeId node);

}  // namespace tessera
