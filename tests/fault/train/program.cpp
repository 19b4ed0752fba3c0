#include "tests/fault/train/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/fault/train/run_files.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

int num_programs = 0;

/// In the child. Only async-signal-safe calls.
[[noreturn]] void become(char* const* words, const char* out, const char* err,
                         const ProgramOptions& options) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
  dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
  if (options.most_file_bytes) {
    const rlimit limit{*options.most_file_bytes, *options.most_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);  // an error of write, as on a full disk
  }
  execvp(words[0], words);
  _exit(127);
}

struct Process {
  pid_t parent = 0;
  char state = 'Z';
};

/// /proc/PID/stat: "pid (name, which may hold anything) state parent ...".
std::optional<Process> look_at(const std::string& pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 4 >= text.size()) return std::nullopt;
  return Process{static_cast<pid_t>(std::atoi(text.c_str() + end_of_name + 4)),
                 text[end_of_name + 2]};
}

std::map<pid_t, Process> all_processes() {
  std::map<pid_t, Process> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    if (const auto process = look_at(name)) processes[std::atoi(name.c_str())] = *process;
  }
  return processes;
}

bool descends_from(pid_t pid, pid_t ancestor, const std::map<pid_t, Process>& processes) {
  for (auto found = processes.find(pid); found != processes.end();
       found = processes.find(found->second.parent))
    if (found->second.parent == ancestor) return true;
  return false;
}

std::vector<pid_t> living_below(pid_t ancestor) {
  std::vector<pid_t> living;
  const std::map<pid_t, Process> processes = all_processes();
  for (const auto& [pid, process] : processes)
    if (process.state != 'Z' && descends_from(pid, ancestor, processes)) living.push_back(pid);
  return living;
}

std::optional<int> rank_of(pid_t pid) {
  const std::string environment = read_file(fmt::format("/proc/{}/environ", pid));
  const std::string key = "OMPI_COMM_WORLD_RANK=";
  const size_t place = environment.find(key);
  if (place == std::string::npos) return std::nullopt;
  return std::atoi(environment.c_str() + place + key.size());
}

}  // namespace

bool await(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Program::Program(const std::vector<std::string>& words, const std::string& log,
                 const ProgramOptions& options)
    : log_(log) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> own = words;
  std::vector<char*> pointers;
  for (std::string& word : own) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string out = log + ".out", err = log + ".err";
  pid_ = fork();
  if (pid_ == 0) become(pointers.data(), out.c_str(), err.c_str(), options);
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  ++num_programs;
}

Program::~Program() {
  if (!ended()) kill(pid_, SIGKILL);
  wait();
  if (--num_programs > 0) return;  // the orphans may be another's
  // Until none is left: one that we kill may have had a child in the meantime.
  await([] {
    for (pid_t pid : living_descendants()) kill(pid, SIGKILL);
    return living_descendants().empty();
  });
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

bool Program::ended() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_)
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_.has_value();
}

std::optional<int> Program::wait(std::chrono::milliseconds limit) {
  await([this] { return ended(); }, limit);
  return exit_code_;
}

void Program::signal(int number) {
  if (!ended()) kill(pid_, number);
}

std::string Program::output() const { return read_file(log_ + ".out"); }
std::string Program::errors() const { return read_file(log_ + ".err"); }

std::map<int, pid_t> Program::ranks() const {
  std::map<int, pid_t> ranks;
  for (pid_t pid : living_below(pid_))
    if (const auto rank = rank_of(pid)) ranks[*rank] = pid;
  return ranks;
}

std::vector<pid_t> living_descendants() { return living_below(getpid()); }

bool mpirun_is_installed() {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (access((folder + "/mpirun").c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace tessera
