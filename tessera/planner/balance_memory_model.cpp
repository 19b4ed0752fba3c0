#include "tessera/planner/balance_memory_model.h"

#include <algorithm>

#include "tessera/planner/balance_partition.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

ChunkGroups single_chunks(int num_stages, int num_chunks) {
  ChunkGroups chunks;
  chunks.stage_of_chunk = chunks.stage_of_group = stages_in_turn(num_stages, num_chunks);
  for (int chunk = 0; chunk < num_chunks; ++chunk) chunks.groups.push_back({chunk});
  return chunks;
}

ChunkGroups ring_chunks(int num_stages) {
  ChunkGroups chunks;
  chunks.stage_of_chunk = stages_in_v(num_stages);
  chunks.stage_of_group = stages_in_turn(num_stages, num_stages);
  for (int stage = 0; stage + 1 < num_stages; ++stage)
    chunks.groups.push_back({stage, 2 * num_stages - 2 - stage});
  chunks.groups.push_back({num_stages - 1});
  return chunks;
}

MemoryModel::MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                         const std::vector<NodeId>& places, const ChunkGroups& chunks)
    : flights_(chunks.stage_of_chunk, chunks.groups, plan.micro_batches, plan.schedule) {
  const int64_t real_bytes = static_cast<int64_t>(c10::elementSize(options.real));
  const auto weights =
      splits_backward(plan.schedule) ? StageWalk::Weights::kApart : StageWalk::Weights::kInBackward;
  for (int stage : chunks.stage_of_group) {
    grids_.push_back(plan.grid(stage));
    std::unique_ptr<Side>& side = sides_[plan.grid(stage)];
    if (side) continue;
    side = std::make_unique<Side>(
        rank_graph(graph, plan, places, {plan.grid(stage), real_bytes, options.optimiser_copies}),
        plan.micro_batches, weights);
  }
}

std::vector<double> MemoryModel::bytes(const Segments& segments) {
  std::vector<double> result(grids_.size(), kUnbounded);
  for (auto& [grid, side] : sides_) {
    const std::vector<NodeRange> parts = side->parts(segments);
    const StageProfile& profile = side->walk.profile(parts);
    const NodeId num_nodes = static_cast<NodeId>(side->graph.nodes.size());
    for (size_t group = 0; group < result.size(); ++group)
      if (grids_[group] == grid)
        result[group] = flights_.bytes(static_cast<int>(group), profile, parts, num_nodes);
  }
  return result;
}

std::vector<double> MemoryModel::mirrored_bytes(const Segments& segments) {
  std::vector<double> result(grids_.size(), kUnbounded);
  for (auto& [grid, side] : sides_) {
    double fixed = 0, peak = 0;
    for (const auto& segment : segments) {
      const SegmentBytes& bytes = side->bytes_alone(segment);
      fixed += bytes.fixed;
      peak = std::max(peak, bytes.peak);
    }
    for (size_t group = 0; group < result.size(); ++group)
      if (grids_[group] == grid) result[group] = fixed + peak;
  }
  return result;
}

/// A segment is part of many pairs.
const MemoryModel::SegmentBytes& MemoryModel::Side::bytes_alone(
    const std::pair<int, int>& segment) {
  const auto [entry, is_new] = known_alone.try_emplace(segment);
  if (is_new) {
    const StageProfile& profile = walk.profile(parts({segment}));
    const double peak = *std::max_element(profile.peak.begin(), profile.peak.end());
    entry->second = {profile.fixed_bytes, peak};
  }
  return entry->second;
}

std::vector<NodeRange> MemoryModel::Side::parts(const Segments& segments) const {
  std::vector<NodeRange> parts;
  const std::vector<NodeId>& nodes = graph.first_node_of_place;
  for (const auto& [begin, end] : segments) parts.push_back({nodes[begin], nodes[end]});
  return parts;
}

}  // namespace tessera
