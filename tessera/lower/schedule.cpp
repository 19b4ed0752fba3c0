#include "tessera/lower/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/lower/schedule_policies.h"

namespace tessera {
namespace {

/// Passes through virtual time. Tasks that begin at the same time come in the order of their
/// stages, except where one of them takes no time and another waits for it: then that one is later.
class Walk {
 public:
  Walk(const TaskGraph& graph, int num_stages)
      : graph_(graph), ready_(num_stages), busy_(num_stages, false) {
    for (int id = 0; id < graph.num_tasks(); ++id) num_missing_.push_back(graph.num_before(id));
  }

  std::vector<ScheduledTask> run() {
    for (int id = 0; id < graph_.num_tasks(); ++id)
      if (num_missing_[id] == 0) make_ready(id);
    begin_tasks(0);
    while (!running_.empty()) {
      const double now = running_.top().first;
      end_tasks(now);
      begin_tasks(now);
    }
    TESSERA_CHECK(static_cast<int>(begun_.size()) == graph_.num_tasks(),
                  "{} of {} tasks wait for each other in a cycle",
                  graph_.num_tasks() - static_cast<int>(begun_.size()), graph_.num_tasks());
    return std::move(begun_);
  }

 private:
  template <class Item>
  using SmallestFirst = std::priority_queue<Item, std::vector<Item>, std::greater<Item>>;

  void make_ready(int id) {
    ready_[graph_.stage(id)].push({graph_.preference(id), id});
    stages_to_look_at_.push_back(graph_.stage(id));
  }

  void end_tasks(double now) {
    while (!running_.empty() && running_.top().first == now) {
      const int ended = running_.top().second;
      running_.pop();
      busy_[graph_.stage(ended)] = false;
      stages_to_look_at_.push_back(graph_.stage(ended));
      for (int id : graph_.after(ended))
        if (--num_missing_[id] == 0) make_ready(id);
    }
  }

  void begin_tasks(double now) {
    std::ranges::sort(stages_to_look_at_);
    for (int stage : std::exchange(stages_to_look_at_, {})) {
      if (busy_[stage] || ready_[stage].empty()) continue;
      const int id = ready_[stage].top().second;
      ready_[stage].pop();
      const double end = now + graph_.cost(id);
      begun_.push_back({graph_.task(id), stage, now, end});
      running_.push({end, id});
      busy_[stage] = true;
    }
  }

  const TaskGraph& graph_;
  std::vector<int> num_missing_;                                  // per task: inputs not there
  std::vector<SmallestFirst<std::pair<Preference, int>>> ready_;  // per stage
  std::vector<bool> busy_;                                        // per stage
  std::vector<int> stages_to_look_at_;                            // something changed there
  SmallestFirst<std::pair<double, int>> running_;                 // by end
  std::vector<ScheduledTask> begun_;
};

void check_costs(const std::vector<double>& costs, size_t num_chunks) {
  TESSERA_CHECK(costs.empty() || costs.size() == num_chunks, "{} costs for {} chunks", costs.size(),
                num_chunks);
  for (double cost : costs) TESSERA_CHECK(std::isfinite(cost) && cost >= 0, "a cost of {}", cost);
}

void check_pipeline(const Pipeline& pipeline) {
  const size_t num_chunks = pipeline.stage_of_chunk.size();
  if (pipeline.micro_batches < 1)
    throw_error<InvalidInput>("[schedule] {} micro-batches; give at least 1",
                              pipeline.micro_batches);
  if (pipeline.num_stages < 1)
    throw_error<InvalidInput>("[schedule] {} stages; give at least 1", pipeline.num_stages);
  TESSERA_CHECK(pipeline.chunks_before.size() == num_chunks, "{} chunks have a stage, {} an order",
                num_chunks, pipeline.chunks_before.size());
  for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const int stage = pipeline.stage_of_chunk[chunk];
    TESSERA_CHECK(stage >= 0 && stage < pipeline.num_stages, "chunk {} on stage {} of {}", chunk,
                  stage, pipeline.num_stages);
    for (int before : pipeline.chunks_before[chunk])
      TESSERA_CHECK(before >= 0 && before < static_cast<int>(chunk), "chunk {} reads chunk {}",
                    chunk, before);
  }
  check_costs(pipeline.forward_cost, num_chunks);
  check_costs(pipeline.backward_cost, num_chunks);
  check_costs(pipeline.weight_cost, num_chunks);
}

}  // namespace

Pipeline Pipeline::chain(int num_stages, int num_chunks, int micro_batches) {
  Pipeline pipeline;
  pipeline.num_stages = num_stages;
  pipeline.micro_batches = micro_batches;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    pipeline.stage_of_chunk.push_back(chunk % num_stages);
    pipeline.chunks_before.emplace_back();
    if (chunk > 0) pipeline.chunks_before.back().push_back(chunk - 1);
  }
  return pipeline;
}

std::vector<ScheduledTask> schedule_tasks(const Pipeline& pipeline, ScheduleKind kind) {
  check_pipeline(pipeline);
  TaskGraph graph(pipeline, kind);
  add_policy(graph, pipeline, kind);
  return Walk(graph, pipeline.num_stages).run();
}

bool splits_backward(ScheduleKind kind) { return kind == ScheduleKind::kZeroBubble; }

}  // namespace tessera
