#include <nlohmann/json.hpp>

#include "tessera/graph/number_type.h"
#include "tessera/inspect/table.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

Json field_json(const ReceptiveField& field) {
  Json axes = Json::array();
  for (const FieldAxis& axis : field.axes)
    axes.push_back({{"pixels", axis.pixels()},
                    {"begin", axis.range.begin},
                    {"end", axis.range.end},
                    {"whole", axis.whole()},
                    {"at_border", axis.at_border()}});
  return axes;
}

Json halo_json(const std::vector<HaloAxis>& halo) {
  Json axes = Json::array();
  for (const HaloAxis& axis : halo)
    axes.push_back({{"low", axis.low}, {"high", axis.high}, {"whole", axis.whole}});
  return axes;
}

Json operator_json(const OperatorProfile& row) {
  return {{"name", row.name},
          {"kind", row.kind},
          {"settings", row.settings},
          {"output_shape", row.output_shape},
          {"parameters", row.parameters},
          {"new_parameters", row.new_parameters},
          {"flops", row.flops},
          {"output_bytes", row.output_bytes},
          {"receptive_field", field_json(row.field)},
          {"halo", halo_json(row.halo)},
          {"statistics", row.has_statistics}};
}

template <class Number>
Json spread_json(Number total, const Spread<Number>& spread) {
  return {{"total", total}, {"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

Json kind_json(const KindProfile& kind) {
  return {{"count", kind.count},
          {"flops", spread_json(kind.total_flops, kind.flops)},
          {"output_bytes", spread_json(kind.total_output_bytes, kind.output_bytes)},
          {"parameters", spread_json(kind.total_parameters, kind.parameters)}};
}

}  // namespace

std::string to_json(const GraphProfile& profile, const TableOptions& options) {
  Json operators = Json::array(), kinds = Json::object();
  for (size_t i : select_operators(profile, options))
    operators.push_back(operator_json(profile.operators[i]));
  for (const KindProfile& kind : profile.kinds) kinds[kind.kind] = kind_json(kind);
  const Json json{{"dtype", number_name(profile.real)},
                  {"operators", operators},
                  {"kinds", kinds},
                  {"totals",
                   {{"operators", profile.operators.size()},
                    {"parameters", profile.parameters},
                    {"trainable_parameters", profile.trainable_parameters},
                    {"parameter_bytes", profile.parameter_bytes},
                    {"buffer_bytes", profile.buffer_bytes},
                    {"flops", profile.flops},
                    {"output_bytes", profile.output_bytes}}}};
  // A name that is not UTF-8 must not end the report.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera
