#pragma once
// What the lowering is asked to make of a graph and a plan.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

enum class StepKind {
  kForward,   // outputs and loss
  kGradient,  // and gradients of the parameters, reduced
  kTrain,     // and the optimiser's update
};

struct LowerOptions {
  StepKind step = StepKind::kGradient;
  bool input_gradients = false;         // keep the gradients of the graph's real inputs
  bool keep_outputs = false;            // keep Graph::outputs() after the step
  bool zero_gradients = true;           // start from zero; without it, add to the last step's
  bool reduce_gradients = true;         // sum them over the ranks; a step that accumulates does not
  bool recompute = true;                // cheap outputs are computed again rather than kept
  int64_t bucket_elements = 6'553'600;  // 25 MiB of float32
  std::vector<std::string> without_rewrites = {};  // names of passes to leave out (rewrite.h)
};

}  // namespace tessera
