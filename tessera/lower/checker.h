#pragma once
// Proves a set of programs before it runs. Throws InternalError, naming rank and instruction,
// unless
//   - every buffer is alive where it is used, every view lies in its buffer, and at the end only
//     results are left;
//   - every Start has its Finish, once, and nothing writes what is being sent, or touches what is
//     being received, in between;
//   - each ordered pair of ranks sends and receives the same messages in the same order (messages
//     match by order, and some transports have no tags);
//   - all ranks end even if every send waits for its receive.

#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

void check_programs(const std::vector<Program>& programs);

}  // namespace tessera
