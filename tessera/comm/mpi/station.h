#pragma once
// The communication thread of one process: the only place where MPI is called. One loop takes the
// rank's orders, polls the wire, watches the peers that the rank waits for, and brings the world to
// its end, good or bad.
//
//   serving ──failure found, ordered or heard──► draining ──no memory in use──► released
//      │         (everyone is told once)                                           │
//      └───────────── leave ordered: bye to all, wait for theirs ◄─────────────────┘
//
// Where all have said bye, nothing is left of this world and another may follow. After a failure
// the others' byes are awaited for a short time only; if one is missing, the program's exit ends
// the job.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/mpi/courier.h"
#include "tessera/comm/mpi/desk.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/comm/mpi/rank_record.h"
#include "tessera/comm/mpi/watch.h"

namespace tessera::mpi {

class Station {
 public:
  Station(std::shared_ptr<Desk> desk, const Options& options);

  /// The thread's whole life; never throws.
  void run() noexcept;

 private:
  void serve();
  bool step();
  void carry_out(const Desk::Orders& orders);
  void listen();
  void handle(int from, const Control& control);
  void tell(int peer, const Control& control);
  void tell_all(Control control);

  void look_after_wait(Clock::time_point now);
  std::string timeout_text(const Desk::Wait& wait) const;
  void check_departed(int peer);

  void fail(const Failure& failure, FailureKind kind);
  void note_failure(const Failure& failure, FailureKind kind);
  void drain(Clock::time_point now);
  void say_bye();
  bool may_end(Clock::time_point now) const;
  bool all_departed() const;
  void close();
  void rest(bool moved);

  std::shared_ptr<Desk> desk_;
  Options options_;
  Clock::duration heartbeat_;
  std::unique_ptr<Wire> wire_;
  std::optional<Courier> courier_;
  std::optional<Watch> watch_;
  std::vector<char> incoming_;                       // the standing receive of control messages
  std::vector<std::optional<PeerCounts>> departed_;  // per peer, its bye
  Clock::time_point next_beat_;
  Clock::time_point last_move_;
  Clock::time_point failed_at_;
  Clock::time_point left_at_;
  bool failed_ = false;
  bool released_ = false;
  bool leaving_ = false;
  bool closing_ = false;  // all have left: nothing that still comes matters
};

}  // namespace tessera::mpi
