#pragma once
// The data of a training run, from the specifications to batches: what is opened, split and
// prepared for each domain, and whether it fits the network. training_job.h has what others use of
// it, too.

#include "tessera/train/training_job.h"

namespace tessera {

/// Throws InvalidInput where samples do not fit the network's first image and its target.
void check_data(const Graph& graph, const Dataset& data);

/// From the images to what the network sees.
void prepare_data(TrainingJob* job);

/// Of the source.
BatchPlan training_batches(const TrainingJob& job);

/// The domains beside the source.
void open_targets(TrainingJob* job);

}  // namespace tessera
