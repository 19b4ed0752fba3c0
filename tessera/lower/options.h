#pragma once
// What the lowering is asked to make of a graph and a plan.

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

enum class StepKind {
  kForward,   // outputs and loss
  kGradient,  // and gradients of the parameters, reduced
  kTrain,     // and their norm, clipping, and the optimiser's update
};

/// What an optimiser keeps of every trainable parameter.
struct OptimiserMemory {
  int copies = 0;         // tensors like the parameter
  bool counters = false;  // a count of its steps
};

struct LowerOptions {
  StepKind step = StepKind::kGradient;
  bool input_gradients = false;  // keep the gradients of the graph's real inputs
  bool keep_outputs = false;     // keep Graph::outputs() after the step
  bool zero_gradients = true;    // start from zero; without it, add to the last step's
  bool reduce_gradients = true;  // sum them over the ranks; a step that accumulates does not
  bool recompute = true;         // cheap outputs are computed again rather than kept
  bool few_samples = false;      // the batch may be smaller than the number of its parts
  // Of kTrain:
  int64_t accumulated_steps = 1;  // whose gradients are added up; the update takes their mean
  double clip_norm = 0;           // longest gradient that is not shortened; 0: no limit
  OptimiserMemory optimiser = {};

  int64_t bucket_elements = 6'553'600;  // 25 MiB of float32
  at::ScalarType real = at::kDouble;    // what scratch is sized for: that of the run, or larger
  at::DeviceType device = at::kCPU;     // whose kernels run
  std::vector<std::string> without_rewrites = {};  // names of passes to leave out (rewrite.h)

  /// Whether gradients stay from step to step, because several steps add to them.
  bool accumulates() const { return !zero_gradients || !reduce_gradients; }
};

}  // namespace tessera
