#pragma once
// Which room (a folder of tessera/) includes which, and what docs/architecture.md allows; and where
// loops over raw numbers may stand.

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tessera {

/// What a room may include, by room. Rooms stand in an order in which each uses earlier ones only.
struct RoomPlan {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> allowed;
  std::set<std::string> without_torch;
};

/// Reads the block that begins with "```rooms": a line for each room, "name: rooms it may use",
/// where "name!:" is a room that never sees torch. Throws InvalidInput.
RoomPlan parse_rooms(const std::string& markdown);

/// One line for each include below `root`/tessera that the plan does not allow.
std::vector<std::string> violations(const std::string& root, const RoomPlan& plan);

/// One line for each place below `root`/tessera where code of a device stands or is named where it
/// should not: outside of kernels/ includes of its folders, in operators and in kernels/aten loops
/// over raw numbers, and in kernels/aten what waits for numbers of a device, but for the
/// families whose results are numbers on the host.
std::vector<std::string> device_code(const std::string& root);

}  // namespace tessera
