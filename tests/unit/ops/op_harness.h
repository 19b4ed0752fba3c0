#pragma once
// Runs every phase of one operator on randomly cut pieces of its output, as an executor would, and
// compares outputs, input gradients, parameter gradients and buffers with Op::reference() under
// autograd. Buffers are hostile on purpose: views have odd strides and lie in NaN, scratch is NaN
// and not a byte larger than asked for, statistics are combined in random trees, and backward gets
// only what the operator says that it keeps. Once in float64, where the numbers must agree, once in
// float32, to see that the kernels are dispatched for it, and once in float64 with the kernels that
// other devices run (kernels/library_kernels.h).
//
// Example:
//   Graph graph;
//   ValueId x = graph.add_input("x", ValueType::image({2, 3, 9, 7}));
//   relu(graph, x, "relu");
//   check_graph_node(graph, seed);

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Differences are relative to the largest reference value of the tensor.
struct HarnessOptions {
  bool unit_part_axis = false;  // cut kPart axes at every entry; else they stay whole
  int max_parts_per_axis = 3;   // of batch and spatial axes
  int64_t micro_batches = 1;    // parts of the batch with statistics of their own, run one by one
  double tolerance = 1e-10;
  double float32_tolerance = 1e-4;
};

/// Reports differences as failures of the current test. Real tensors may have any real type.
void check_op(const Op& op, const std::vector<ValueType>& input_types,
              const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters,
              const std::vector<at::Tensor>& buffers, uint64_t seed, HarnessOptions options = {});

/// check_op for the node of the graph (for each of them alone, where there are several), on random
/// inputs and parameters in [-1, 1), buffers in [0.5, 1.5) and labels below the logits' channels.
void check_graph_node(const Graph& graph, uint64_t seed, HarnessOptions options = {});

}  // namespace tessera
