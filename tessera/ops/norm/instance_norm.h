#pragma once
// Instance normalisation: each channel of each sample on its own, over all of space. With running
// statistics, which are those of the instances averaged over the batch, it is batch normalisation
// by running statistics, and the operator is that one.
//
// Example:
//   ValueId y = instance_norm(graph, x, "enc1.norm", {.affine = true});

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct InstanceNormOptions {
  enum class Statistics {
    kInstance,  // of the input; also updates the running ones where they are tracked
    kRunning,   // the running ones, unchanged
  };

  Statistics statistics = Statistics::kInstance;
  double epsilon = 1e-5;
  double momentum = 0.1;       // weight of this batch in the running statistics
  bool affine = false;         // has a weight and a bias
  bool track_running = false;  // kRunning has them in any case
};

/// Parameters name.weight and name.bias where affine, buffers name.running_mean and
/// name.running_var where they are tracked or used, one entry per channel each. A channel of a
/// sample must hold more than one value, unless the statistics are running ones.
ValueId instance_norm(Graph& graph, ValueId x, const std::string& name,
                      const InstanceNormOptions& options = {});

}  // namespace tessera
