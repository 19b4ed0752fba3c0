#include "tessera/comm/mpi/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tessera/comm/mpi/batch.h"

namespace tessera::mpi {
namespace {

/// /proc/PID/stat: "pid (name, which may hold anything) state parent group session ...".
bool lives_in(pid_t pid, pid_t leader) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return false;
  std::istringstream words(line.substr(end_of_name + 1));
  char state = 'Z';
  pid_t parent = 0, group = 0, session = 0;
  words >> state >> parent >> group >> session;
  return words && session == leader && state != 'Z' && state != 'X';
}

}  // namespace

std::vector<pid_t> living_in_session(pid_t leader) {
  std::vector<pid_t> living;
  std::error_code error;  // a process that ends while we look
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const pid_t pid = std::atoi(entry->path().filename().c_str());
    if (pid > 0 && lives_in(pid, leader)) living.push_back(pid);
  }
  return living;
}

void end_session(pid_t leader, std::chrono::milliseconds patience) {
  constexpr std::chrono::seconds kLongestDying{10};  // stuck in a system call
  const auto kill_at = Clock::now() + patience;
  for (auto living = living_in_session(leader);
       !living.empty() && Clock::now() < kill_at + kLongestDying;
       living = living_in_session(leader)) {
    if (Clock::now() >= kill_at)
      for (const pid_t pid : living) kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace tessera::mpi
