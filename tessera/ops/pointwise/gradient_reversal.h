#pragma once
// Gradient reversal (Ganin et al., "Domain-Adversarial Training of Neural Networks", 2016): forward
// gives x as it is, backward gives -lambda times the gradient. What comes after learns to tell the
// domains apart, what comes before learns to make that hard.
//
// Example:
//   x = gradient_reversal(graph, code, "reversal", StepFunction(1, 0, 10'000));

#include <string>

#include "tessera/base/step_function.h"
#include "tessera/graph/graph.h"

namespace tessera {

ValueId gradient_reversal(Graph& graph, ValueId x, const std::string& name,
                          const StepFunction& lambda = {});

}  // namespace tessera
