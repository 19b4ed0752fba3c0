#pragma once
// Training by autograd on whole tensors: what a run on any placement must come to.

#include <functional>
#include <vector>

#include "tessera/data/batch_loader.h"
#include "tessera/graph/reference.h"
#include "tessera/train/configured.h"
#include "tessera/train/training_job.h"

namespace tessera {

using NetworkOfBatch = std::function<Graph(int64_t batch)>;

inline std::vector<at::Tensor> batch_inputs(const BatchLoader& loader, const Graph& graph,
                                            int64_t batch) {
  const Shape images = graph.type(graph.inputs()[0]).shape();
  const Shape targets = graph.type(graph.inputs()[1]).shape();
  std::vector<at::Tensor> inputs{at::empty(images, at::kDouble), at::empty(targets, at::kLong)};
  loader.load({Field::kImages, Box::whole(images)}, batch, inputs[0]);
  loader.load({Field::kTargets, Box::whole(targets)}, batch, inputs[1]);
  return inputs;
}

/// The parameters after config.steps steps without accumulation and clipping, at a constant rate.
/// The last batch of an epoch has what is left of the samples, in a network built for that many.
inline std::vector<at::Tensor> train_by_reference(const TrainConfig& config, int64_t batch_size,
                                                  const NetworkOfBatch& network) {
  const TrainingJob job = prepare_training(config, network(batch_size), {}, at::kDouble);
  const BatchLoader loader = job.train_loader();
  const int64_t samples = job.train_set->size();
  const int64_t per_epoch = (samples + batch_size - 1) / batch_size;
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : job.graph.parameters())
    parameters.push_back(initial_value(parameter, config.seed));
  const std::unique_ptr<Optimiser> optimiser = configured_optimiser(config);
  for (int64_t step = 0; step < *config.steps; ++step) {
    const int64_t before = step % per_epoch * batch_size;
    const Graph graph = network(std::min(batch_size, samples - before));
    const ReferenceResult result =
        run_reference(graph, batch_inputs(loader, graph, step), parameters, config.seed, step);
    optimiser->step(parameters, result.gradients);
  }
  return parameters;
}

}  // namespace tessera
