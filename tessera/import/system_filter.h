#pragma once
// Closes a process in: from then on the kernel (seccomp) refuses it everything but computing and
// writing to descriptors that it was given. Nothing takes that back, and what it starts inherits
// it.
//
// What is left: memory that holds no code, time, random numbers, and the end of the process. To
// open a file even for reading is refused, so that a closed-in process cannot give away what it
// should not have read. An attempt to change a file, to reach the network, to start a program or to
// touch another process ends it with SIGSYS, so that its parent can tell what happened.

#include <vector>

namespace tessera {

/// False where the system cannot do that; then nothing has changed. `writable`: the descriptors
/// that may be written to, at most 8.
bool close_in(const std::vector<int>& writable);

}  // namespace tessera
