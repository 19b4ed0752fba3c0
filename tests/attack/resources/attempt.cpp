#include "tests/attack/resources/attempt.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace tessera_attack {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr uid_t kNobody = 65534;

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::chrono::duration<double> patience() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = 0;
  return 60s * std::max(1.0, load / std::max(1u, std::thread::hardware_concurrency()));
}

void redirect(const char* path, int descriptor) {
  const int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
  close(file);
}

void starve(const Starvation& starvation) {
  // The number of processes is a limit for everybody but root.
  if (starvation.resource == RLIMIT_NPROC && geteuid() == 0 &&
      (setgroups(0, nullptr) != 0 || setresuid(kNobody, kNobody, kNobody) != 0))
    _exit(126);
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource_t>(starvation.resource), &limit);
  limit.rlim_cur = limit.rlim_max = std::min(starvation.limit, limit.rlim_max);
  if (setrlimit(static_cast<__rlimit_resource_t>(starvation.resource), &limit) != 0) _exit(126);
}

[[noreturn]] void become_program(const Attempt& attempt, const std::string& folder) {
  if (chdir(folder.c_str()) != 0) _exit(126);
  setsid();
  redirect("stdout", STDOUT_FILENO);
  redirect("stderr", STDERR_FILENO);
  std::vector<char*> words{const_cast<char*>(TESSERA_PROGRAM)};
  for (const std::string& word : attempt.arguments)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (attempt.starvation) starve(*attempt.starvation);
  execv(TESSERA_PROGRAM, words.data());
  _exit(126);
}

}  // namespace

Ending make(const Attempt& attempt, const std::string& folder) {
  Ending ending;
  const auto begin = Clock::now();
  const auto limit = begin + std::chrono::duration_cast<Clock::duration>(patience());
  const pid_t child = fork();
  if (child == 0) become_program(attempt, folder);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const auto now = Clock::now();
    if (attempt.signal && !ending.signalled && now >= begin + attempt.signal_after) {
      kill(child, *attempt.signal);
      ending.signalled = true;
    }
    if (now >= limit && !ending.hung) {
      ending.hung = true;
      kill(-child, SIGKILL);
    }
    std::this_thread::sleep_for(2ms);
  }
  ending.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  ending.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ending.out = read_all(folder + "/stdout");
  ending.err = read_all(folder + "/stderr");
  return ending;
}

std::string to_string(const Attempt& attempt) {
  std::string text;
  if (attempt.starvation)
    text = std::string("prlimit --") + attempt.starvation->name + "=" +
           std::to_string(attempt.starvation->limit) + ": ";
  text += "tessera";
  for (const std::string& word : attempt.arguments) text += " '" + word + "'";
  if (attempt.signal)
    text += ", signal " + std::to_string(*attempt.signal) + " after " +
            std::to_string(attempt.signal_after.count()) + " ms";
  return text;
}

}  // namespace tessera_attack
