#include "tests/attack/writers/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tessera::attack {
namespace {

/// In the child. Only async-signal-safe calls.
void set_stream(int descriptor, Stream kind, const char* file) {
  int source = -1;
  int ends[2];
  if (kind == Stream::kOpen && descriptor == STDIN_FILENO) source = open("/dev/null", O_RDONLY);
  if (kind == Stream::kOpen && descriptor != STDIN_FILENO)
    source = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (kind == Stream::kFull) source = open("/dev/full", O_RDWR);
  if (kind == Stream::kBrokenPipe && pipe(ends) == 0) {
    close(ends[0]);
    source = ends[1];
  }
  if (source < 0) {
    close(descriptor);
    return;
  }
  dup2(source, descriptor);
  if (source != descriptor) close(source);
}

[[noreturn]] void become(char* const* words, const char* folder, const char* out, const char* err,
                         const Surroundings& surroundings) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing running
  if (chdir(folder) != 0) _exit(126);
  set_stream(STDOUT_FILENO, surroundings.out, out);
  set_stream(STDERR_FILENO, surroundings.err, err);
  set_stream(STDIN_FILENO, surroundings.in, nullptr);
  // Opening the others may have taken a number that was to stay free.
  if (surroundings.out == Stream::kClosed) close(STDOUT_FILENO);
  if (surroundings.err == Stream::kClosed) close(STDERR_FILENO);
  if (surroundings.most_file_bytes) {
    const rlimit limit{*surroundings.most_file_bytes, *surroundings.most_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  execv(words[0], words);
  _exit(127);
}

}  // namespace

Child::Child(const Words& words, const std::string& folder, const std::string& log,
             const Surroundings& surroundings)
    : log_(log) {
  Words own{TESSERA_PROGRAM};
  own.insert(own.end(), words.begin(), words.end());
  for (const std::string& word : words) name_ += " " + word;
  std::vector<char*> pointers;
  for (std::string& word : own) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string out = log + ".out", err = log + ".err";
  write_file(out, "");
  write_file(err, "");
  pid_ = fork();
  if (pid_ == 0) become(pointers.data(), folder.c_str(), out.c_str(), err.c_str(), surroundings);
  if (pid_ < 0) throw std::runtime_error("cannot fork");
}

Child::~Child() {
  kill_now();
  status_within(std::chrono::seconds(10));
}

std::optional<int> Child::status_within(std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (int status = 0; !status_ && std::chrono::steady_clock::now() < end;) {
    if (waitpid(pid_, &status, WNOHANG) == pid_)
      status_ = status;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status_;
}

int Child::exit_code() {
  const std::optional<int> status = status_within(std::chrono::seconds(60));
  if (status && WIFEXITED(*status)) {
    EXPECT_NE(WEXITSTATUS(*status), 70) << name_ << "\n" << errors();
    return WEXITSTATUS(*status);
  }
  if (status)
    ADD_FAILURE() << "signal " << WTERMSIG(*status) << ":" << name_ << "\n" << errors();
  else
    ADD_FAILURE() << "hangs:" << name_ << "\n" << errors();
  return -1;
}

void Child::kill_now() {
  if (!status_) kill(pid_, SIGKILL);
}

std::string Child::output() const { return read_file(log_ + ".out"); }
std::string Child::errors() const { return read_file(log_ + ".err"); }

Ending run(const Words& words, const std::string& folder, const Surroundings& surroundings) {
  const Folder logs;
  Child child(words, folder, logs / "log", surroundings);
  const int exit_code = child.exit_code();
  return {exit_code, child.output(), child.errors()};
}

bool mpirun_is_installed() {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (access((folder + "/mpirun").c_str(), X_OK) == 0) return true;
  return false;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "tessera-attack-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera::attack
