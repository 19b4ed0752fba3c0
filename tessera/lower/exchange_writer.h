#pragma once
// Exchanges between ranks: moves become one message per peer, and sends whose end nobody here waits
// for are finished as soon as their receivers have posted.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/lower/program_writer.h"

namespace tessera {

/// One direction of an edge group's transfer, as this rank sees it.
struct Exchange {
  std::vector<Message> sends;
  std::vector<Message> receives;
  std::vector<const Move*> only_move;  // per receive, where it has one move; else null
  bool idle() const { return sends.empty() && receives.empty(); }
  std::vector<BufferId> strips() const;
};

class ExchangeWriter {
 public:
  explicit ExchangeWriter(ProgramWriter* writer)
      : writer_(*writer), busy_until_(writer->placed.plan.num_stages(), 0) {}

  /// The moves that cross ranks, as one message per peer with its boxes in plan order. `peer_of`
  /// says who is at the other end, or -1 where the move does not count. `only` gets the only move
  /// of each message, or null.
  static std::vector<Message> route(std::span<const Move> moves,
                                    const std::function<int(const Move&)>& peer_of,
                                    const std::function<View(const Move&)>& view_of,
                                    std::vector<const Move*>* only = nullptr);

  /// Gives every message its strip. A message of one box has the shape of the box; where it is sent
  /// from a buffer of that very box, the buffer itself is what travels.
  void add_strips(const std::string& name, ElementType element, Exchange* exchange);

  /// Posts it. A rank that has nothing more to do with the exchange (`finished_here` is false)
  /// finishes its sends once their receivers have posted, by the schedule's time.
  void start(int channel, const Exchange& exchange, bool finished_here);
  void finish(int channel, const Exchange& exchange);

  /// Puts what an exchange received into its places, which `received` names message by message,
  /// except for messages that became buffers themselves.
  void unpack(const Exchange& exchange, std::vector<Message> received,
              const std::vector<bool>& taken_over, Combine combine);

  /// A task begins, here or elsewhere: its stage is busy until its end.
  void begin(const ScheduledTask& task) { busy_until_[task.stage] = task.end; }
  /// Ends the sends that have been received by the schedule's time `now`.
  void finish_sends(double now);

 private:
  /// A transfer in which this rank only sends.
  struct PendingSend {
    int channel = -1;
    std::vector<BufferId> strips;
    double received = 0;
  };

  BufferId add_strip(const Message& message, const std::string& name, ElementType element);

  ProgramWriter& writer_;
  std::vector<double> busy_until_;  // per stage: the end of its last task so far
  std::vector<PendingSend> pending_;
};

}  // namespace tessera
