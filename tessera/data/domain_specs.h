#pragma once
// Data sets of several domains, as `--data` takes them: one specification (open.h) for each image
// that the network reads.
//
//   source=folder:mnist;target1=folder:mnist_m;target2=list:street.csv
//
// A specification without a name is the source's, of a network that reads one image.

#include <string>
#include <vector>

namespace tessera {

struct DomainSpec {
  std::string name;  // see domain_name in graph/domains.h
  std::string spec;
};

/// In the order in which they are written. Throws InvalidInput with [--data] for a name that is
/// none, or is there twice, and for a domain without a specification.
std::vector<DomainSpec> parse_domain_specs(const std::string& text);

/// The specifications of a network with `num_domains` images, in the order of the domains. Throws
/// InvalidInput with the remedy where one is missing or one is too many.
std::vector<std::string> specs_of_domains(const std::string& text, int num_domains);

}  // namespace tessera
