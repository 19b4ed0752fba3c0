#pragma once
// Where does a stall begin? The rank that runs out of time first is seldom the one to blame: in a
// ring, everyone waits for a neighbour and only one of them is stuck. So the message follows the
// waits to their end.

#include <string>
#include <vector>

namespace tessera::threads {

/// Per rank the peers whose messages it waits for; empty when it is not in a wait.
using WaitGraph = std::vector<std::vector<int>>;

/// One clause: the ranks at which the waits that begin at `rank` end, or that they form a cycle.
std::string explain_stall(const WaitGraph& waits_for, int rank);

}  // namespace tessera::threads
