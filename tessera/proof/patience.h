#pragma once
// Long work on rank 0 while all others wait for it: longer, perhaps, than a wait may take.

#include <chrono>
#include <functional>

#include "tessera/comm/transport.h"

namespace tessera {

/// Collective over all ranks. Rank 0 runs `work` on a thread of its own, and tells the others every
/// `sign_of_life` that it is still at it; they return when it is done. What the work throws, rank 0
/// throws. One message of one byte to each rank each time.
void while_others_wait(Transport& transport, std::chrono::milliseconds sign_of_life,
                       const std::function<void()>& work);

}  // namespace tessera
