#include "tessera/planner/balance_memory_model.h"

namespace tessera {

MemoryModel::MemoryModel(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                         const std::vector<NodeId>& places,
                         const std::vector<int>& stage_of_chunk) {
  const int num_chunks = static_cast<int>(stage_of_chunk.size());
  Pipeline pipeline = Pipeline::chain(1, num_chunks, static_cast<int>(plan.micro_batches));
  pipeline.num_stages = plan.num_stages();
  pipeline.stage_of_chunk = stage_of_chunk;
  const bool by_chunk = plan.schedule == ScheduleKind::kInterleaved;
  std::vector<std::vector<ScheduledTask>> tasks(by_chunk ? num_chunks : plan.num_stages());
  for (const ScheduledTask& each : schedule_tasks(pipeline, plan.schedule))
    tasks[by_chunk ? each.task.chunk : each.stage].push_back(each);
  for (size_t i = 0; i < tasks.size(); ++i) {
    flights_.emplace_back(tasks[i]);
    grids_.push_back(plan.grid(by_chunk ? stage_of_chunk[i] : static_cast<int>(i)));
    if (!footprints_.contains(grids_[i]))
      footprints_.try_emplace(grids_[i], graph, plan, options, grids_[i], places);
  }
}

std::vector<double> MemoryModel::bytes(const Segments& segments) {
  std::vector<double> result;
  for (size_t i = 0; i < flights_.size(); ++i)
    result.push_back(flights_[i].bytes(
        segments, [&](const Segments& own) { return footprints_.at(grids_[i]).held(own); }));
  return result;
}

}  // namespace tessera
