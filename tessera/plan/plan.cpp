#include "tessera/plan/plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int64_t kMaxRanks = 1 << 20;

int64_t entry(const std::vector<int64_t>& parts, int axis) {
  return axis < static_cast<int>(parts.size()) ? parts[axis] : 1;
}

void check_axes(const std::vector<int64_t>& parts, const char* what, const ValueType& input) {
  if (!parts.empty() && static_cast<int>(parts.size()) != input.num_spatial())
    throw_error<InvalidInput>(
        "[plan] {} {} has {} axes, but the input {} has {} spatial axes; give {}", what,
        to_string(parts), parts.size(), to_string(input), input.num_spatial(), input.num_spatial());
}

void check_positive(int64_t parts, const char* what) {
  if (parts < 1 || parts > kMaxRanks)
    throw_error<InvalidInput>("[plan] {} has {} parts; give 1 to {}", what, parts, kMaxRanks);
}

}  // namespace

int Plan::num_ranks() const {
  int64_t ranks = data;
  for (int64_t parts : space) ranks *= parts;
  return static_cast<int>(ranks);
}

int64_t Plan::space_parts(int axis) const { return entry(space, axis); }
int64_t Plan::pieces_along(int axis) const { return entry(pieces, axis); }

void check_plan(const Plan& plan, const ValueType& input) {
  check_axes(plan.space, "space", input);
  check_axes(plan.pieces, "pieces", input);
  check_positive(plan.data, "data");
  if (plan.data > input.batch())
    throw_error<InvalidInput>("[plan] data {} is more than the batch of {}; use at most {}",
                              plan.data, input.batch(), input.batch());
  int64_t ranks = plan.data;
  for (int i = 0; i < input.num_spatial(); ++i) {
    const int64_t size = input.axes[input.first_spatial() + i].size;
    check_positive(plan.space_parts(i), "space");
    check_positive(plan.pieces_along(i), "pieces");
    if (plan.space_parts(i) * plan.pieces_along(i) > size)
      throw_error<InvalidInput>(
          "[plan] spatial axis {} of {} has {} pixels and cannot be cut into {} x {} (space x "
          "pieces); use at most {} parts there",
          i, to_string(input), size, plan.space_parts(i), plan.pieces_along(i), size);
    ranks *= plan.space_parts(i);
    check_positive(ranks, "the grid");
  }
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format("data {}", plan.data);
  if (!plan.space.empty()) text += ", space " + to_string(plan.space);
  if (!plan.pieces.empty()) text += ", pieces " + to_string(plan.pieces);
  return text;
}

std::string to_json(const Plan& plan) {
  return nlohmann::json{{"data", plan.data}, {"space", plan.space}, {"pieces", plan.pieces}}.dump();
}

Plan plan_from_json(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const auto& [key, value] : json.items())
      if (key != "data" && key != "space" && key != "pieces")
        throw_error<InvalidInput>("[plan] unknown key \"{}\"; known: data, space, pieces", key);
    return {json.value("data", int64_t{1}), json.value("space", std::vector<int64_t>{}),
            json.value("pieces", std::vector<int64_t>{})};
  } catch (const nlohmann::json::exception& error) {
    throw_error<InvalidInput>("[plan] not a plan: {}", error.what());
  }
}

}  // namespace tessera
