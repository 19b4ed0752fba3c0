#pragma once
// How often each class occurs in the labels of a data set, and the weights that make up for it.

#include <cstdint>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

/// Counts the labels 0 to num_classes - 1 of all samples; others do not count. Reads every label
/// once, in strips, on `threads` threads: no thread holds a whole label map. Throws what reading
/// throws.
std::vector<int64_t> count_labels(const Dataset& data, int64_t num_classes, int threads);

/// labels / (classes that occur x labels of the class): each of these classes weighs as much as
/// any other in the sum over all labels, and a label weighs 1 on average. 1 for a class that does
/// not occur. (scikit-learn's "balanced" weights.)
std::vector<double> balanced_weights(const std::vector<int64_t>& counts);

}  // namespace tessera
