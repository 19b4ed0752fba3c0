#pragma once
// Applies a trained network to every sample of a data set: each rank computes its own boxes and
// hands them to the caller, and no rank ever holds the whole image.
//
// Example, on every rank:
//   const Lowering lowering = lower_prediction(graph, plan, at::kFloat);
//   Program program = lowering.program(rank);
//   ParameterStore parameters(graph, program.parameters, seed, at::kFloat);
//   load_weights("w.safetensors", graph, parameters.values());
//   predict(lowering, program, *data, &parameters, &transport, at::kFloat,
//           [&](int64_t batch, const Box& box, const at::Tensor& logits) { ... });

#include <functional>

#include "tessera/data/dataset.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/executor.h"

namespace tessera {

/// Takes the logits of a box (batch x classes x space) of one batch.
using TakeLogits = std::function<void(int64_t batch, const Box& box, const at::Tensor& logits)>;

/// The forward step of a graph, with running statistics.
Lowering lower_prediction(const Graph& graph, const Plan& plan, at::ScalarType real);

/// Collective over all ranks, each with its own program. Labels are not read.
void predict(const Lowering& lowering, Program program, const Dataset& data,
             ParameterStore* parameters, Transport* transport, at::ScalarType real,
             const TakeLogits& take);

}  // namespace tessera
