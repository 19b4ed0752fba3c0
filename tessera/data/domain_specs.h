#pragma once
// Data sets of several domains, as `--data` takes them: one specification (open.h) for each image
// that the network reads.
//
//   source=folder:mnist;target1=folder:mnist_m,shuffle=no;target2=list:street.csv
//
// shuffle=no among the options of a data set takes its samples in their order.
// A specification without a name is the source's, of a network that reads one image.

#include <string>
#include <vector>

#include "tessera/data/batch_plan.h"

namespace tessera {

struct DomainSpec {
  std::string name;  // of the domain
  std::string spec;
  BatchOrder order = BatchOrder::kShuffled;
};

/// In the order in which they are written. Throws InvalidInput with [--data] for a name that is
/// none, or is there twice, and for a domain without a specification.
std::vector<DomainSpec> parse_domain_specs(const std::string& text);

/// The specifications of a network with `num_domains` images, in the order of the domains. Throws
/// InvalidInput with the remedy where one is missing or one is too many.
std::vector<DomainSpec> specs_of_domains(const std::string& text, int num_domains);

}  // namespace tessera
