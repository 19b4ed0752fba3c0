#pragma once
// A run's folder in place of a model: the network, the placement and how images are read are those
// of the run, and nothing is typed again.

#include <string>

#include "tessera/config/train_config.h"
#include "tessera/graph/graph.h"
#include "tessera/job/applied_data.h"

namespace tessera {

/// Whether a path in place of a model is the folder of a run.
bool names_a_run(const std::string& path);

/// What the run was told, to apply its network again. Throws InvalidInput where run.json does not
/// say it.
TrainConfig run_config(const std::string& folder);

/// The data set that config.data names, for a network that is applied: images may have any size,
/// and need no targets. Their numbers, axes and spacing are brought to those that the run in the
/// folder `run` was trained on; without a run they stay as they are.
AppliedData open_applied_data(const TrainConfig& config, const Graph& graph,
                              const std::string& run = {});

}  // namespace tessera
