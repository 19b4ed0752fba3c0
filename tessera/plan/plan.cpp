#include "tessera/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/plan/limits.h"

namespace tessera {
namespace {

int64_t entry(const std::vector<int64_t>& parts, int axis) {
  return axis < static_cast<int>(parts.size()) ? parts[axis] : 1;
}

void check_axes(const std::vector<int64_t>& parts, const char* what, const ValueType& input) {
  if (!parts.empty() && static_cast<int>(parts.size()) != input.num_spatial())
    throw_error<InvalidInput>(
        "[plan] {} {} has {}, but the input {} has {}; give {}", what, to_string(parts),
        counted(std::ssize(parts), "axis", "axes"), to_string(input),
        counted(input.num_spatial(), "spatial axis", "spatial axes"), input.num_spatial());
}

void check_parts(int64_t parts, const char* what) {
  if (parts < 1 || parts > kMostParts)
    throw_error<InvalidInput>("[plan] {} has {} parts; give 1 to {}", what, parts, kMostParts);
}

void check_batch(const Plan& plan, const ValueType& input) {
  check_parts(plan.data, "data");
  check_parts(plan.micro_batches, "micro-batches");
  if (plan.data * plan.micro_batches <= input.batch()) return;
  if (plan.micro_batches == 1)
    throw_error<InvalidInput>("[plan] data {} is more than the batch of {}; use at most {}",
                              plan.data, input.batch(), input.batch());
  throw_error<InvalidInput>(
      "[plan] {} micro-batches x data {} is more than the batch of {}; use a batch of at least {}, "
      "or fewer micro-batches",
      plan.micro_batches, plan.data, input.batch(), plan.micro_batches * plan.data);
}

void check_grid(const Plan& plan, int stage, const ValueType& input) {
  check_axes(plan.grid(stage), "space", input);
  for (int i = 0; i < input.num_spatial(); ++i) {
    const int64_t size = input.axes[input.first_spatial() + i].size;
    const int64_t parts = plan.space_parts(stage, i);
    check_parts(parts, "space");
    check_parts(plan.pieces_along(i), "pieces");
    if (parts * plan.pieces_along(i) > size)
      throw_error<InvalidInput>(
          "[plan] spatial axis {} of {} has {} and cannot be cut into {} x {} (space x "
          "pieces); use at most {} there",
          i, to_string(input), counted(size, "pixel"), parts, plan.pieces_along(i),
          counted(size, "part"));
  }
}

void check_schedule(const Plan& plan) {
  if (plan.schedule != ScheduleKind::kGems) return;
  for (int stage = 0; stage < plan.num_stages(); ++stage)
    if (plan.grid(stage) != plan.grid(plan.num_stages() - 1 - stage))
      throw_error<InvalidInput>(
          "[plan] gems runs every second micro-batch through the stages the other way, so stage {} "
          "and stage {} need the same grid, not {} and {}; use equal grids, or another schedule",
          stage, plan.num_stages() - 1 - stage, to_string(plan.grid(stage)),
          to_string(plan.grid(plan.num_stages() - 1 - stage)));
}

using Json = nlohmann::json;

int64_t count(const Json& json, const std::string& key) {
  return whole_number(json, key, 1, kMostParts);
}

std::vector<int64_t> counts(const Json& json, const std::string& key) {
  if (!json.is_array())
    throw_error<InvalidInput>("\"{}\" holds {}, which is not a list", key, excerpt(json));
  std::vector<int64_t> list;
  for (const Json& entry : json) list.push_back(count(entry, key));
  return list;
}

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys{
      "data",          "space",    "pieces",         "stages",        "stage_of",
      "micro_batches", "schedule", "schedule_costs", "scratch_bytes", "multigrid"};
  return keys;
}

std::string name_in(const Json& json, const char* key, const std::string& otherwise) {
  if (!json.contains(key)) return otherwise;
  if (!json[key].is_string())
    throw_error<InvalidInput>("\"{}\" holds {}, which is not a name", key, excerpt(json[key]));
  return json[key].get<std::string>();
}

void check_keys(const Json& json) {
  if (!json.is_object())
    throw_error<InvalidInput>("it is not a plan: a plan is an object such as {{\"data\": 2}}");
  for (const auto& [key, value] : json.items())
    if (std::find(known_keys().begin(), known_keys().end(), key) == known_keys().end())
      throw_error<InvalidInput>("unknown key {}; known: {}", excerpt(key),
                                fmt::join(known_keys(), ", "));
}

Plan plan_of(const Json& json) {
  check_keys(json);
  Plan plan;
  if (json.contains("data")) plan.data = count(json["data"], "data");
  if (json.contains("space")) plan.space = counts(json["space"], "space");
  if (json.contains("pieces")) plan.pieces = counts(json["pieces"], "pieces");
  const Json stages = json.value("stages", Json::array());
  const Json stage_of = json.value("stage_of", Json::object());
  if (!stages.is_array() || !stage_of.is_object())
    throw_error<InvalidInput>(
        "\"stages\" must be a list of grids, and \"stage_of\" an object of names");
  for (const Json& grid : stages) plan.stages.push_back(counts(grid, "stages"));
  for (const auto& [node, stage] : stage_of.items())
    plan.stage_of[node] = static_cast<int>(whole_number(stage, "stage_of", 0, kMostParts));
  if (json.contains("micro_batches"))
    plan.micro_batches = count(json["micro_batches"], "micro_batches");
  plan.schedule = parse_schedule(name_in(json, "schedule", to_string(plan.schedule)));
  plan.schedule_costs =
      parse_schedule_costs(name_in(json, "schedule_costs", to_string(plan.schedule_costs)));
  if (json.contains("multigrid")) plan.multigrid = parse_multigrid(name_in(json, "multigrid", ""));
  if (json.contains("scratch_bytes"))
    plan.scratch_bytes = whole_number(json["scratch_bytes"], "scratch_bytes", 0, kMostScratchBytes);
  return plan;
}

}  // namespace

int Plan::num_ranks() const { return static_cast<int>(data) * ranks_per_replica(); }

int Plan::ranks_per_replica() const { return first_rank(num_stages()); }

int Plan::ranks_of_stage(int stage) const { return static_cast<int>(product_of(grid(stage))); }

int Plan::first_rank(int stage) const {
  int first = 0;
  for (int before = 0; before < stage; ++before) first += ranks_of_stage(before);
  return first;
}

int Plan::stage_of_rank(int rank) const {
  int stage = 0;
  while (rank % ranks_per_replica() >= first_rank(stage + 1)) ++stage;
  return stage;
}

Members Plan::stage_ranks(int stage) const {
  const int per_replica = ranks_per_replica(), first = first_rank(stage);
  const int cells = ranks_of_stage(stage);
  Members ranks;
  for (int replica = 0; replica < static_cast<int>(data); ++replica)
    for (int cell = 0; cell < cells; ++cell) ranks.push_back(replica * per_replica + first + cell);
  return ranks;
}

int Plan::place_of_stage(int stage, int64_t micro_batch) const {
  return stage_for(stage, micro_batch, num_stages(), schedule);
}

int64_t Plan::space_parts(int stage, int axis) const { return entry(grid(stage), axis); }
int64_t Plan::pieces_along(int axis) const { return entry(pieces, axis); }

void check_num_ranks(const Plan& plan) {
  if (plan.data < 1)
    throw_error<InvalidInput>("[plan] data has {} parts; give 1 or more", plan.data);
  if (plan.num_stages() > kMostStages)
    throw_error<InvalidInput>("[plan] {} stages; give at most {}", plan.num_stages(), kMostStages);
  int64_t ranks = 0;
  for (int stage = 0; stage < plan.num_stages(); ++stage) {
    const std::vector<int64_t>& grid = plan.grid(stage);
    if (std::any_of(grid.begin(), grid.end(), [](int64_t parts) { return parts < 1; }))
      throw_error<InvalidInput>("[plan] the grid {} has an axis without parts; give 1 or more",
                                to_string(grid));
    ranks += std::min(product_of({plan.data, product_of(grid)}), kMostRanks + 1);
    if (ranks > kMostRanks)
      throw_error<InvalidInput>(
          "[plan] data {} and {} have more than {} workers; use fewer parts of the batch, of the "
          "space or stages",
          plan.data,
          plan.stages.empty() ? "space " + to_string(grid)
                              : fmt::format("{} stages", plan.num_stages()),
          kMostRanks);
  }
}

void check_plan(const Plan& plan, const ValueType& input) {
  check_axes(plan.pieces, "pieces", input);
  check_batch(plan, input);
  if (!plan.stages.empty() && !plan.space.empty())
    throw_error<InvalidInput>("[plan] every stage has a grid of its own; leave \"space\" out");
  for (int stage = 0; stage < plan.num_stages(); ++stage) check_grid(plan, stage, input);
  check_num_ranks(plan);
  check_schedule(plan);
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format("data {}", plan.data);
  if (!plan.space.empty()) text += ", space " + to_string(plan.space);
  if (!plan.stages.empty()) {
    text += fmt::format(", {} stages", plan.num_stages());
    if (plan.ranks_per_replica() > plan.num_stages()) {
      std::vector<std::string> grids;
      for (const auto& grid : plan.stages) grids.push_back(grid.empty() ? "1" : to_string(grid));
      text += fmt::format(" of {}", fmt::join(grids, ", "));
    }
  }
  if (!plan.pieces.empty()) text += ", pieces " + to_string(plan.pieces);
  if (plan.micro_batches > 1) text += fmt::format(", {} micro-batches", plan.micro_batches);
  if (plan.multigrid) text += ", multigrid " + to_string(*plan.multigrid);
  if (plan.num_stages() == 1 && plan.micro_batches == 1) return text;
  text += ", " + to_string(plan.schedule);
  if (plan.schedule_costs != ScheduleCosts::kTasks) text += " by " + to_string(plan.schedule_costs);
  return text;
}

std::string to_json(const Plan& plan) {
  Json json{{"data", plan.data}, {"space", plan.space}, {"pieces", plan.pieces}};
  if (!plan.stages.empty()) json["stages"] = plan.stages;
  if (!plan.stage_of.empty()) json["stage_of"] = plan.stage_of;
  if (plan.num_stages() > 1 || plan.micro_batches > 1) {
    json["micro_batches"] = plan.micro_batches;
    json["schedule"] = to_string(plan.schedule);
    if (plan.schedule_costs != ScheduleCosts::kTasks)
      json["schedule_costs"] = to_string(plan.schedule_costs);
  }
  if (plan.multigrid) json["multigrid"] = to_string(*plan.multigrid);
  if (plan.scratch_bytes != kUsualScratchBytes) json["scratch_bytes"] = plan.scratch_bytes;
  return json_text(json);
}

Plan plan_from_json(const std::string& text, const std::string& file_name) {
  try {
    return plan_of(parse_json(text));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[plan] {}: {}", file_name, cut_short(error.what()));
  }
}

Plan read_plan(const std::string& path) { return plan_from_json(read_text(path, "--plan"), path); }

}  // namespace tessera
