#include "tessera/inspect/profile.h"

#include <algorithm>

namespace tessera {
namespace {

int64_t element_bytes(Element element, at::ScalarType real) {
  return static_cast<int64_t>(c10::elementSize(element == Element::kReal ? real : at::kLong));
}

OperatorProfile profile_operator(const Graph& graph, const Node& node, at::ScalarType real,
                                 std::vector<bool>* is_counted) {
  OperatorProfile row;
  row.name = node.name;
  row.kind = node.op->kind();
  row.settings = node.op->settings();
  const Box output = Box::whole(node.types.output.shape());
  if (!node.op->is_loss()) {
    row.output_shape = node.types.output.shape();
    row.output_bytes = output.volume() * element_bytes(node.types.output.element, real);
  }
  row.flops = node.op->flops(output, node.types);
  row.has_statistics = node.op->forward_statistics(node.types).per_piece > 0;
  for (ParameterId id : node.parameters) {
    const int64_t numel = graph.parameters()[id].numel();
    row.parameters += numel;
    if (!(*is_counted)[id]) row.new_parameters += numel;
    (*is_counted)[id] = true;
  }
  return row;
}

template <class Number>
Spread<Number> spread(std::vector<Number> numbers) {
  std::ranges::sort(numbers);
  const size_t size = numbers.size();
  const double median =
      (static_cast<double>(numbers[(size - 1) / 2]) + static_cast<double>(numbers[size / 2])) / 2;
  return {numbers.front(), median, numbers.back()};
}

KindProfile profile_kind(const std::string& kind, const std::vector<OperatorProfile>& operators) {
  KindProfile profile;
  profile.kind = kind;
  std::vector<double> flops;
  std::vector<int64_t> bytes, parameters;
  for (const OperatorProfile& row : operators) {
    if (row.kind != kind) continue;
    ++profile.count;
    flops.push_back(row.flops);
    bytes.push_back(row.output_bytes);
    parameters.push_back(row.parameters);
    profile.total_flops += row.flops;
    profile.total_output_bytes += row.output_bytes;
    profile.total_parameters += row.new_parameters;
  }
  profile.flops = spread(flops);
  profile.output_bytes = spread(bytes);
  profile.parameters = spread(parameters);
  return profile;
}

std::vector<KindProfile> profile_kinds(const std::vector<OperatorProfile>& operators) {
  std::vector<KindProfile> kinds;
  for (const OperatorProfile& row : operators) {
    const bool is_known = std::ranges::any_of(
        kinds, [&](const KindProfile& known) { return known.kind == row.kind; });
    if (!is_known) kinds.push_back(profile_kind(row.kind, operators));
  }
  std::ranges::stable_sort(kinds, std::greater<>(), &KindProfile::total_flops);
  return kinds;
}

void add_totals(const Graph& graph, GraphProfile* profile) {
  const int64_t real_bytes = element_bytes(Element::kReal, profile->real);
  for (const Parameter& parameter : graph.parameters()) {
    if (parameter.role == ParameterRole::kBuffer) {
      profile->buffer_bytes += parameter.numel() * real_bytes;
      continue;
    }
    if (parameter.role == ParameterRole::kDerived) continue;  // its sources count
    profile->parameters += parameter.numel();
    profile->parameter_bytes += parameter.numel() * real_bytes;
    if (parameter.role == ParameterRole::kTrainable)
      profile->trainable_parameters += parameter.numel();
  }
  for (const OperatorProfile& row : profile->operators) {
    profile->flops += row.flops;
    profile->output_bytes += row.output_bytes;
  }
}

}  // namespace

GraphProfile profile(const Graph& graph, at::ScalarType real) {
  GraphProfile profile;
  profile.real = real;
  const std::vector<ReceptiveField> fields = receptive_fields(graph);
  std::vector<bool> is_counted(graph.parameters().size(), false);
  for (const Node& node : graph.nodes()) {
    profile.operators.push_back(profile_operator(graph, node, real, &is_counted));
    profile.operators.back().field = fields[node.output];
    profile.operators.back().halo = operator_halo(node);
  }
  profile.kinds = profile_kinds(profile.operators);
  add_totals(graph, &profile);
  return profile;
}

}  // namespace tessera
