#pragma once
// A started batch as the rank's thread and the communication thread share it. The rank's thread
// makes it and, once all is settled or the transport has let go, frees it; in between only the
// communication thread changes it, under the station's lock where both look.

#include <chrono>
#include <cstdint>
#include <vector>

#include "tessera/comm/posted_message.h"

namespace tessera::mpi {

using Clock = std::chrono::steady_clock;

struct StartedBatch;

struct CarriedMessage : PostedMessage {
  StartedBatch* batch = nullptr;
  int64_t chunks_left = 0;  // on the wire; the communication thread's own
  bool settled = false;     // under the station's lock
};

struct StartedBatch {
  std::vector<CarriedMessage> messages;  // does not grow after posting: the courier points into it
  int64_t num_unsettled = 0;             // under the station's lock
  Clock::time_point last_progress;       // under the station's lock
};

}  // namespace tessera::mpi
