#pragma once
// Carries the ranks' messages over the wire. A small message travels inside its envelope. For a
// long one the receiver first says that its memory is ready; until then MPI knows nothing of either
// side's memory, so a failed world has little to take back:
//
//   sender                                   receiver
//   envelope: sizes [+ small content] ---->  meets the next receive; sizes differ: the world fails
//                                     <----  clear: data receives are posted       (long ones only)
//   data chunks                       ---->  straight to their place
//
// The k-th envelope of a pair meets its k-th receive by MPI's order; clears are alike, so the k-th
// clear stands for the k-th long message; data chunks follow in the same order.
//
// After a failure the courier stops: it starts nothing new, and memory is in use only by chunks on
// the wire. Both sides have posted those, except for receives whose chunks the peer never sent; its
// farewell says how many it did send, and the rest is cancelled.
//
// Used by the communication thread only.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/mpi/batch.h"
#include "tessera/comm/mpi/control.h"
#include "tessera/comm/mpi/wire.h"

namespace tessera::mpi {

struct CourierEvents {
  std::function<void(CarriedMessage&)> settled;        // the message's memory is free again
  std::function<void(CarriedMessage&)> progressed;     // a chunk of it has moved
  std::function<void(const std::string&)> mismatched;  // the world cannot go on
};

class Courier {
 public:
  /// Messages that this rank sends are cut into chunks of `chunk_bytes`.
  Courier(Wire& wire, int64_t chunk_bytes, CourierEvents events);

  /// The batch lives until all its messages are settled or the courier is stopped and idle.
  void post(StartedBatch& batch);

  const PeerCounts& counts(int peer) const { return peers_[peer].counts; }

  /// Starts nothing more and settles nothing more.
  void stop() { stopped_ = true; }
  /// After stop(): the peer has stopped too, having sent us `chunks_sent` chunks in all.
  void peer_stopped(int peer, int64_t chunks_sent);
  /// After stop(): gives up all receives that can be given up.
  void cancel_receives();

  /// No memory of a batch is on the wire.
  bool idle() const { return num_data_sends_ == 0 && num_data_receives_ == 0; }
  bool receiving() const { return num_data_receives_ > 0; }
  /// Bytes of the n-th receive from this peer, which has not got its envelope yet.
  int64_t expected_bytes(int peer, int64_t n) const;

 private:
  struct Envelope;
  /// A receive, in the order of posting, until its envelope has been dealt with.
  struct Expected {
    CarriedMessage* message = nullptr;
    std::shared_ptr<Envelope> envelope;
    bool arrived = false;
  };
  struct Peer {
    PeerCounts counts;
    std::deque<CarriedMessage*> uncleared;  // long sends that wait for their clear
    std::deque<std::shared_ptr<Expected>> expected;
    int64_t chunks_expected = 0;
    std::map<int64_t, RequestId> data_receives;  // on the wire, by number of the chunk
  };

  void post_send(CarriedMessage& message);
  void post_receive(CarriedMessage& message);
  void envelopes_arrived(Peer& peer);
  void accept(CarriedMessage& message, const Envelope& envelope);
  void send_data(CarriedMessage& message);
  void receive_data(CarriedMessage& message, int64_t chunk_bytes);
  void chunk_done(CarriedMessage& message);

  Wire& wire_;
  int64_t chunk_bytes_;
  CourierEvents events_;
  std::vector<Peer> peers_;
  int64_t num_data_sends_ = 0;
  int64_t num_data_receives_ = 0;
  bool stopped_ = false;
};

}  // namespace tessera::mpi
