#pragma once
// Proves programs before they run. Throws InternalError, naming rank and instruction, unless ...

#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

/// - every buffer is alive where it is used, every view lies in its buffer, and at the end only
///   results are left;
/// - every Start has its Finish, once, and in between nothing writes what is being sent, or touches
///   what is being received or reduced.
void check_program(const Program& program);

/// - each ordered pair of ranks sends and receives the same messages in the same order (messages
///   match by order, and some transports have no tags);
/// - all ranks end even if every send waits for its receive.
/// It takes all programs of a world, in the order of their ranks.
void check_messages(const std::vector<Program>& programs);

/// Checks both, for all programs of a world.
void check_programs(const std::vector<Program>& programs);

}  // namespace tessera
