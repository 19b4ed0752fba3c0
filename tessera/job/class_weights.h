#pragma once
// --loss cross_entropy:class_weights=auto: weights of the classes by how often they occur in the
// labels of the training samples. Counted once, before the first step.

#include <memory>
#include <string>
#include <vector>

#include "tessera/config/train_config.h"
#include "tessera/data/dataset.h"
#include "tessera/job/job.h"

namespace tessera {

bool asks_for_class_weights(const std::string& loss);

/// The weights, where the loss asks for them; else none. Every process reads all labels.
std::vector<double> counted_class_weights(const Job& job, const TrainConfig& config,
                                          std::shared_ptr<const Dataset> data);

/// The job's graph with these weights in its losses.
Graph with_class_weights(const Graph& graph, const TrainConfig& config,
                         const std::vector<double>& weights);

/// Those that a run has counted, by one of its checkpoints; empty where the path is not one, or the
/// run had counted none.
std::vector<double> recorded_class_weights(const std::string& checkpoint);

}  // namespace tessera
