#include "tessera/planner/balance_memory_model.h"

#include <algorithm>

#include "tessera/planner/balance_partition.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

ChunkGroups single_chunks(int num_stages, int num_chunks) {
  ChunkGroups chunks;
  chunks.stage_of_chunk = chunks.stage_of_group = stages_in_turn(num_stages, num_chunks);
  for (int chunk = 0; chunk < num_chunks; ++chunk) chunks.groups.push_back({{chunk}});
  return chunks;
}

ChunkGroups ring_chunks(int num_stages) {
  ChunkGroups chunks;
  chunks.stage_of_chunk = stages_in_v(num_stages);
  chunks.stage_of_group = stages_in_turn(num_stages, num_stages);
  for (int stage = 0; stage + 1 < num_stages; ++stage)
    chunks.groups.push_back({{stage, 2 * num_stages - 2 - stage}});
  chunks.groups.push_back({{num_stages - 1}});
  return chunks;
}

ChunkGroups mirrored_chunks(int num_stages) {
  ChunkGroups chunks;
  chunks.stage_of_chunk = stages_in_turn(num_stages, num_stages);
  for (int stage = 0; 2 * stage < num_stages; ++stage) {
    const int mirror = num_stages - 1 - stage;
    chunks.groups.push_back(stage == mirror ? ChunkTracks{{stage}}
                                            : ChunkTracks{{stage}, {mirror}});
    chunks.stage_of_group.push_back(stage);
  }
  return chunks;
}

MemoryModel::MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                         const std::vector<NodeId>& places, const ChunkGroups& chunks)
    : places_(places) {
  for (size_t group = 0; group < chunks.groups.size(); ++group) {
    const std::vector<int64_t>& grid = plan.grid(chunks.stage_of_group[group]);
    flights_.emplace_back(chunks.stage_of_chunk, chunks.groups[group], plan.micro_batches,
                          plan.schedule);
    grids_.push_back(grid);
    std::unique_ptr<Side>& side = sides_[grid];
    if (!side) side = std::make_unique<Side>(read_steps(graph, plan, options, grid, places));
  }
}

void MemoryModel::expect(const std::vector<NodeId>& cuts) {
  chunk_of_unit_.clear();
  for (size_t unit = 0; unit + 1 < places_.size(); ++unit)
    chunk_of_unit_.push_back(static_cast<int>(
        std::upper_bound(cuts.begin(), cuts.end() - 1, places_[unit]) - cuts.begin() - 1));
}

std::vector<double> MemoryModel::bytes(const std::vector<Segments>& tracks) {
  std::vector<double> result(grids_.size(), kUnbounded);
  for (auto& [grid, side] : sides_) {
    std::vector<TrackProfile> profiles;
    for (const Segments& segments : tracks) profiles.push_back(side->profile(segments));
    std::vector<const TrackProfile*> pointers;
    for (const TrackProfile& profile : profiles) pointers.push_back(&profile);
    for (size_t group = 0; group < result.size(); ++group)
      if (grids_[group] == grid) result[group] = flights_[group].bytes(pointers, chunk_of_unit_);
  }
  return result;
}

TrackProfile MemoryModel::Side::profile(const Segments& segments) {
  if (segments.size() > 1) return {segments, profiler.profile(segments)};
  const auto [entry, is_new] = known.try_emplace(segments[0]);
  if (is_new) entry->second = profiler.profile(segments);
  return {segments, entry->second};
}

}  // namespace tessera
