#pragma once
// Which stage runs which node where a network reads an image of each of several
// domains: the passes of a domain go to a group of workers of its own. Groups are stages like
// others, that happen not to follow each other:
//
//   1 group a domain:   image  ► encoders, head, decoder, losses         stage 0
//                       image1 ► encoders, decoder, losses               stage 1
//   2 groups a domain:  image  ► shared encoder, head                    stage 0
//                       image  ► private encoder, decoder, losses        stage 1, ...
//
// A node belongs to the last domain that it depends on, so what compares a target with the source
// is the target's. Branches are told apart by the nodes that read the image: the first one begins
// the first branch, all others the second; a node that depends on both is the second's, and so is
// one without weights that only the second reads. So one code crosses between the two groups, and
// nothing else.

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct DomainGroups {
  std::vector<int> of_node;
  std::vector<std::string> names;  // of the groups: "source", or "source, first branch"
  int count() const { return static_cast<int>(names.size()); }
};

/// `per_domain` is 1 or 2. Throws InvalidInput with [--domains] where there is one domain, or a
/// domain has one branch and two are asked for.
DomainGroups group_by_domains(const Graph& graph, int per_domain);

/// The stage of every node, by name: each group is cut into plan.num_stages() / count() consecutive
/// stages of equal time. Throws InvalidInput where a group has fewer nodes.
std::map<std::string, int> stages_by_domains(const Graph& graph, const Plan& plan,
                                             const DomainGroups& groups);

}  // namespace tessera
