#pragma once
// One launched job of ranks that misbehave in a named way, and how it ended.

#include <string>
#include <vector>

namespace tessera {

struct JobResult {
  int exit_code = -1;
  std::string errors;  // all that the ranks and the launcher wrote to stderr
};

/// Launches this program as ranks that play the scenario.
JobResult play(int ranks, const std::string& scenario,
               const std::vector<std::string>& arguments = {});

/// In a launched rank: plays the scenario and returns the exit code, as the program `tessera`
/// would.
int play_as_rank(const std::string& scenario, const std::vector<std::string>& arguments);

/// Waits until `ranks` ranks of the job with this folder have called mark_running().
void await_running(const std::string& folder, int ranks);
void mark_running(const std::string& folder, int rank);

}  // namespace tessera
