#include "tessera/planner/domains.h"

#include <algorithm>
#include <compare>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/domains.h"
#include "tessera/lower/cost_model.h"
#include "tessera/planner/balance_costs.h"
#include "tessera/planner/balance_places.h"

namespace tessera {
namespace {

/// Of a value: the last domain that it depends on, and of this the last branch.
struct Origin {
  int domain = -1;  // -1: none, as a target
  int branch = -1;  // -1: the image itself
  auto operator<=>(const Origin&) const = default;
};

/// What the second branch alone reads goes with it, where that moves no weights: a code then
/// crosses once, and not what is made of it besides.
void follow_readers(const Graph& graph, std::vector<Origin>* of_node) {
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    const std::vector<Use>& uses = graph.value(node.output).uses;
    Origin& origin = (*of_node)[id];
    const Origin second{origin.domain, 1};
    const auto is_second = [&](const Use& use) { return (*of_node)[use.node] == second; };
    if (node.parameters.empty() && !uses.empty() &&
        std::all_of(uses.begin(), uses.end(), is_second))
      origin = second;
  }
}

std::vector<Origin> origins_of_nodes(const Graph& graph) {
  const std::vector<ValueId> images = image_inputs(graph);
  std::vector<Origin> of_value(graph.values().size());
  for (size_t domain = 0; domain < images.size(); ++domain)
    of_value[images[domain]].domain = static_cast<int>(domain);
  std::vector<Origin> of_node;
  std::vector<bool> has_branch(images.size(), false);
  for (const Node& node : graph.nodes()) {
    Origin origin;
    for (ValueId input : node.inputs) origin = std::max(origin, of_value[input]);
    if (origin.domain >= 0 && origin.branch < 0) {  // it begins a branch
      origin.branch = has_branch[origin.domain] ? 1 : 0;
      has_branch[origin.domain] = true;
    }
    of_value[node.output] = origin;
    of_node.push_back(origin);
  }
  follow_readers(graph, &of_node);
  return of_node;
}

/// Consecutive parts of some nodes, ascending, by time; those that the lowering makes one operator
/// are not cut apart.
std::vector<int> cut_by_time(const Graph& graph, const std::vector<NodeId>& nodes,
                             const std::vector<double>& seconds, const std::string& group,
                             int num_parts) {
  std::vector<NodeId> whole_places = cut_places(graph, 1);
  std::vector<double> before{0};  // at the beginning of each unit
  std::vector<int> unit_of_node;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool begins = i == 0 || nodes[i - 1] + 1 != nodes[i] ||
                        std::binary_search(whole_places.begin(), whole_places.end(), nodes[i]);
    if (begins) before.push_back(before.back());
    before.back() += seconds[nodes[i]];
    unit_of_node.push_back(static_cast<int>(before.size()) - 2);
  }
  const int num_units = static_cast<int>(before.size()) - 1;
  if (num_units < num_parts)
    throw_error<InvalidInput>("[--stages] {} has {} for {} of its own; use at most {}", group,
                              counted(num_units, "node"), counted(num_parts, "stage"), num_units);
  const std::vector<int> cuts = best_partition(
      num_units, num_parts, [&](int, int begin, int end) { return before[end] - before[begin]; },
      no_tie_cost);
  std::vector<int> parts;
  for (int unit : unit_of_node)
    parts.push_back(
        static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), unit) - cuts.begin()) - 1);
  return parts;
}

/// Of forward and backward, by the roofline.
std::vector<double> seconds_of_nodes(const Graph& graph) {
  std::vector<NodeId> all;
  for (NodeId id = 0; id <= static_cast<NodeId>(graph.nodes().size()); ++id) all.push_back(id);
  const std::vector<double> before = training_time_before(graph, all, Roofline({}, at::kFloat));
  std::vector<double> seconds;
  for (size_t id = 0; id + 1 < before.size(); ++id) seconds.push_back(before[id + 1] - before[id]);
  return seconds;
}

}  // namespace

DomainGroups group_by_domains(const Graph& graph, int per_domain) {
  const std::vector<ValueId> images = image_inputs(graph);
  if (images.size() < 2)
    throw_error<InvalidInput>(
        "[--domains] the network reads {}, and each domain has one of its own; use a model for "
        "several domains, such as dsn:targets=2, or leave --domains out",
        counted(std::ssize(images), "image"));
  DomainGroups groups;
  for (int domain = 0; domain < static_cast<int>(images.size()); ++domain)
    for (int branch = 0; branch < per_domain; ++branch)
      groups.names.push_back(domain_name(domain) + (per_domain == 1 ? ""
                                                    : branch == 0   ? ", first branch"
                                                                    : ", second branch"));
  std::vector<bool> is_used(groups.names.size(), false);
  for (const Origin& origin : origins_of_nodes(graph)) {
    const int domain = std::max(origin.domain, 0), branch = std::max(origin.branch, 0);
    groups.of_node.push_back(domain * per_domain + std::min(branch, per_domain - 1));
    is_used[groups.of_node.back()] = true;
  }
  for (size_t group = 0; group < is_used.size(); ++group)
    if (!is_used[group])
      throw_error<InvalidInput>(
          "[--domains] the image of {} is read by one branch of the network, and there are two "
          "groups of "
          "workers for it; use --domains 1",
          domain_name(static_cast<int>(group) / per_domain));
  return groups;
}

std::map<std::string, int> stages_by_domains(const Graph& graph, const Plan& plan,
                                             const DomainGroups& groups) {
  const int each = plan.num_stages() / groups.count();
  TESSERA_CHECK(each * groups.count() == plan.num_stages(), "{} stages for {} groups",
                plan.num_stages(), groups.count());
  const std::vector<double> seconds = seconds_of_nodes(graph);
  std::map<std::string, int> stage_of;
  for (int group = 0; group < groups.count(); ++group) {
    std::vector<NodeId> nodes;
    for (NodeId id = 0; id < static_cast<NodeId>(groups.of_node.size()); ++id)
      if (groups.of_node[id] == group) nodes.push_back(id);
    const std::vector<int> parts = cut_by_time(graph, nodes, seconds, groups.names[group], each);
    for (size_t i = 0; i < nodes.size(); ++i)
      stage_of[graph.node(nodes[i]).name] = group * each + parts[i];
  }
  return stage_of;
}

}  // namespace tessera
