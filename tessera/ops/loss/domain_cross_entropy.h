#pragma once
// Which domain do these codes come from? Cross entropy of a classifier of domains, where all rows
// (samples of features, pixels of images) belong to one domain, so that no target is needed:
//
//   loss = weight * mean over the rows of -log softmax(x)_domain
//
// Each domain has a loss of its own, with a classifier that all share ((N + 1)-way) or that two do
// (pairwise). With weights rows_of_domain / rows_of_all their sum is the mean over all domains.
//
// Example: behind a gradient reversal, the third of four domains
//   domain_cross_entropy(graph, logits, 2, "domain2", {.weight = 0.25});

#include <cstdint>
#include <string>

#include "tessera/base/step_function.h"
#include "tessera/graph/graph.h"

namespace tessera {

struct DomainCrossEntropyOptions {
  StepFunction weight = 1;
};

/// The logits have at least two channels, one per domain. Throws InvalidInput for another domain.
ValueId domain_cross_entropy(Graph& graph, ValueId logits, int64_t domain, const std::string& name,
                             const DomainCrossEntropyOptions& options = {});

}  // namespace tessera
