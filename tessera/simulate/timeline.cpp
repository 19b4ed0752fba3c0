#include "tessera/simulate/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/lower/posts.h"
#include "tessera/simulate/message_clock.h"

namespace tessera {
namespace {

enum class Progress { kDone, kWaits };

/// Whether weight gradients are tasks of their own.
bool has_weight_tasks(const std::vector<Program>& programs) {
  for (const Program& program : programs)
    for (const Instruction& instruction : program.instructions)
      if (const auto* enter = std::get_if<Enter>(&instruction);
          enter && enter->part == Enter::Part::kTask && enter->task.kind == TaskKind::kWeight)
        return true;
  return false;
}

/// What all ranks share.
struct World {
  const Graph& graph;
  const CostModel& costs;
  bool weight_tasks;
  MessageClock messages;

  /// Setting up and finishing are no tasks.
  double task_cost(const Enter& enter) const {
    if (enter.part != Enter::Part::kTask) return 0;
    const bool with_weights = enter.task.kind == TaskKind::kBackward && !weight_tasks;
    return costs.task(enter.task.kind) + (with_weights ? costs.task(TaskKind::kWeight) : 0);
  }
};

/// One rank on its way through its program.
class RankWalk {
 public:
  RankWalk(const Program& program, World* world) : program_(program), world_(*world) {
    enter_.part = Enter::Part::kSetUp;
  }

  /// Goes as far as it gets without another rank's next steps. Returns whether it moved at all.
  bool advance() {
    moved_ = false;
    while (!ended() && std::visit([this](const auto& each) { return execute(each); },
                                  program_.instructions[at_]) == Progress::kDone) {
      ++at_;
      moved_ = true;
    }
    return moved_;
  }
  bool ended() const { return at_ == program_.instructions.size(); }
  size_t at() const { return at_; }

  /// Ends the last task and hands over the spans. Returns when the rank ends.
  double conclude(Timeline* timeline) {
    end_task();
    timeline->tasks.insert(timeline->tasks.end(), tasks_.begin(), tasks_.end());
    timeline->waits.insert(timeline->waits.end(), waits_.begin(), waits_.end());
    timeline->ranks.push_back({busy_, 0});
    return now_;
  }

 private:
  /// Messages that were started together.
  struct Channel {
    std::vector<MessageClock::Ticket> tickets;
    bool receives = false;
  };

  template <class T>
  Progress execute(const T&) {
    return Progress::kDone;
  }
  Progress execute(const Enter& enter) {
    end_task();
    enter_ = enter;
    entered_ = now_;
    owed_ = world_.task_cost(enter);
    return Progress::kDone;
  }
  Progress execute(const Run& run) {
    work(world_.costs.kernel(world_.graph.node(run.node), run.phase, run.box));
    return Progress::kDone;
  }
  Progress execute(const StartTransfer& transfer) { return communicate(transfer); }
  Progress execute(const FinishTransfer& transfer) { return communicate(transfer); }
  Progress execute(const StartReduce& reduce) { return communicate(reduce); }
  Progress execute(const AdvanceReduce& reduce) { return communicate(reduce); }
  Progress execute(const FinishReduce& reduce) { return communicate(reduce); }

  /// A Start posts and goes on, an Advance waits before it posts; a Finish waits, before each of
  /// its rounds and after the last.
  template <class T>
  Progress communicate(const T& instruction) {
    if (!communication_)
      communication_ = communication_of(instruction, program_, program_.rank, world_.costs.real());
    while (true) {
      if (communication_->waits_after(next_round_) &&
          wait(communication_->channel) == Progress::kWaits)
        return Progress::kWaits;
      if (next_round_ == communication_->rounds.size()) break;
      post(communication_->channel, communication_->rounds[next_round_++]);
      moved_ = true;  // others may wait for it
    }
    communication_.reset();
    next_round_ = 0;
    return Progress::kDone;
  }

  void post(int channel, const Posts& posts) {
    if (!posts.sends.empty()) settle();
    Channel& open = open_[channel];
    open.receives |= !posts.receives.empty();
    const int rank = program_.rank;
    for (const Post& each : posts.sends)
      open.tickets.push_back(
          world_.messages.send(rank, each.peer, now_, world_.costs.message(each.bytes)));
    for (const Post& each : posts.receives)
      open.tickets.push_back(world_.messages.receive(each.peer, rank, now_));
  }

  Progress wait(int channel) {
    const Channel& open = open_[channel];
    if (!open.receives) settle();
    double until = now_;
    for (const MessageClock::Ticket& ticket : open.tickets) {
      const std::optional<double> done = world_.messages.done(ticket);
      if (!done) return Progress::kWaits;
      until = std::max(until, *done);
    }
    open_.erase(channel);
    add_span(&waits_, now_, until);
    now_ = until;
    return Progress::kDone;
  }

  void work(double time) {
    now_ += time;
    busy_ += time;
  }

  /// What a task itself costs is due when its inputs are there and before anything is handed over,
  /// as a schedule's drawing has it: before the first message that it sends, and before it waits
  /// for others to take what was sent.
  void settle() { work(std::exchange(owed_, 0)); }

  void end_task() {
    settle();
    add_span(&tasks_, entered_, now_);
    entered_ = now_;
  }

  void add_span(std::vector<TimelineSpan>* spans, double begin, double end) const {
    if (end > begin) spans->push_back({program_.rank, enter_, begin, end});
  }

  const Program& program_;
  World& world_;
  size_t at_ = 0;
  bool moved_ = false;
  double now_ = 0;
  double busy_ = 0;
  Enter enter_;
  double entered_ = 0;
  double owed_ = 0;                             // of the open task
  std::optional<Communication> communication_;  // of the instruction that is being executed
  size_t next_round_ = 0;                       // of it
  std::map<int, Channel> open_;
  std::vector<TimelineSpan> tasks_;
  std::vector<TimelineSpan> waits_;
};

void walk_together(std::vector<RankWalk>* walks) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (RankWalk& walk : *walks) moved |= walk.advance();
  }
  for (size_t rank = 0; rank < walks->size(); ++rank)
    TESSERA_CHECK((*walks)[rank].ended(), "rank {} waits for ever at instruction {}", rank,
                  (*walks)[rank].at());
}

}  // namespace

double Timeline::bubble_fraction() const {
  double idle = 0;
  for (const RankTime& rank : ranks) idle += rank.idle;
  return step_time > 0 ? idle / (step_time * static_cast<double>(ranks.size())) : 0;
}

Timeline make_timeline(const std::vector<Program>& programs, const Graph& graph,
                       const CostModel& costs) {
  World world{graph, costs, has_weight_tasks(programs), {}};
  std::vector<RankWalk> walks;
  for (const Program& program : programs) walks.emplace_back(program, &world);
  walk_together(&walks);

  Timeline timeline;
  timeline.unit = costs.unit();
  for (RankWalk& walk : walks)
    timeline.step_time = std::max(timeline.step_time, walk.conclude(&timeline));
  for (RankTime& rank : timeline.ranks) rank.idle = timeline.step_time - rank.busy;
  return timeline;
}

}  // namespace tessera
