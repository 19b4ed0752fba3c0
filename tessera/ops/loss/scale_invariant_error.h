#pragma once
// The scale-invariant mean squared error (Eigen, Puhrsch, Fergus, "Depth Map Prediction from a
// Single Image", 2014), by which domain separation networks judge reconstructions: a pixel that is
// wrong by as much as all others of its image costs nothing. With d = x - t of the k elements of an
// image,
//
//   loss = weight * mean over the images of  sum d^2 / k - (sum d)^2 / k^2
//
// which is the variance of d. It is taken as such, by counts, means and squared distances of the
// pieces, image by image: no difference of two large sums.
//
// Example:
//   scale_invariant_error(graph, reconstruction, image, "reconstruction", {.weight = 0.1});

#include <string>

#include "tessera/base/step_function.h"
#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct ScaleInvariantOptions {
  StepFunction weight = 1;
};

/// The target has the prediction's shape and gets no gradient; it may be any value.
ValueId scale_invariant_error(Graph& graph, ValueId prediction, ValueId target,
                              const std::string& name, const ScaleInvariantOptions& options = {});

}  // namespace tessera
