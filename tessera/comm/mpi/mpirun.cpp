#include "tessera/comm/mpi/mpirun.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/comm/mpi/private_network.h"

namespace tessera::mpi {
namespace {

/// Two ends, closed with the object where nobody has taken them.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw_error<OutOfMemory>(
          "[launch] cannot make a pipe to mpirun: {}; allow more open files "
          "(ulimit -n)",
          std::strerror(errno));
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  int take_reader() { return std::exchange(ends_[0], -1); }
  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// mpirun is to start the ranks here and not on the nodes of an allocation around us.
bool names_allocation(std::string_view variable) {
  for (const std::string_view prefix : {"SLURM_", "PBS_", "LSB_"})
    if (variable.starts_with(prefix)) return true;
  return false;
}

/// What Debian's own settings leave out between ranks besides TCP stays out, since a variable
/// replaces those settings.
constexpr const char* kNoTcp = "OMPI_MCA_btl=^tcp,uct,openib,ofi";
constexpr const char* kLoopback = "OMPI_MCA_oob_tcp_if_include=lo";

std::vector<char*> environment_for(Mpirun::Network network, bool is_private, std::string& more) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable; ++variable)
    if (network == Mpirun::Network::kShared || !names_allocation(*variable))
      variables.push_back(*variable);
  if (network == Mpirun::Network::kPrivate && !is_private) {
    if (!getenv("OMPI_MCA_btl")) variables.push_back(const_cast<char*>(kNoTcp));
    if (!getenv("OMPI_MCA_oob_tcp_if_include")) variables.push_back(const_cast<char*>(kLoopback));
  }
  variables.push_back(more.data());
  variables.push_back(nullptr);
  return variables;
}

struct Child {
  char* const* words;
  char* const* environment;
  bool has_private_network;
  int stdout_pipe;
  int stderr_pipe;
  int error_pipe;
};

/// Without a terminal to read from, which would stop it.
[[noreturn]] void become(const Child& child) {
  setsid();
  const bool isolated = !child.has_private_network || enter_private_network();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  dup2(child.stdout_pipe, STDOUT_FILENO);
  dup2(child.stderr_pipe, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (isolated) execvpe(child.words[0], child.words, child.environment);
  const int error = isolated ? errno : EPERM;
  [[maybe_unused]] const ssize_t written = write(child.error_pipe, &error, sizeof(error));
  _exit(127);
}

/// The errno of a child that could not become mpirun; 0 where it has.
int error_of_child(int error_pipe) {
  int error = 0;
  ssize_t heard = 0;
  do heard = read(error_pipe, &error, sizeof(error));
  while (heard < 0 && errno == EINTR);  // Ctrl-C goes to mpirun, too, which ends in its own way
  return heard < 0 ? errno : error;
}

[[noreturn]] void throw_not_started(const std::string& program, int error) {
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE)
    throw_error<OutOfMemory>(
        "[launch] cannot start {}: {}; allow more processes, memory or open "
        "files (ulimit -u, -v, -n)",
        program, std::strerror(error));
  if (error == ENOENT)
    throw_error<InvalidInput>(
        "[launch] cannot start {}: there is none in PATH; install openmpi-bin", program);
  throw_error<InvalidInput>("[launch] cannot start {}: {}; use an Open MPI that can be run",
                            program, std::strerror(error));
}

}  // namespace

Mpirun::Mpirun(std::vector<std::string> words, std::string variable, Network network) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  Pipe errors, results, remarks;
  const bool is_private = network == Network::kPrivate && can_enter_private_network();
  const std::vector<char*> environment = environment_for(network, is_private, variable);
  pid_ = fork();
  if (pid_ == 0)
    become({pointers.data(), environment.data(), is_private, results.writer(), remarks.writer(),
            errors.writer()});
  const int fork_error = pid_ < 0 ? errno : 0;
  for (Pipe* pipe : {&errors, &results, &remarks}) pipe->close_writer();
  const int error = fork_error ? fork_error : error_of_child(errors.reader());
  if (error != 0) {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    throw_not_started(words[0], error);
  }
  results_.descriptor = results.take_reader();
  remarks_.descriptor = remarks.take_reader();
  for (const Source& source : {results_, remarks_}) fcntl(source.descriptor, F_SETFL, O_NONBLOCK);
}

Mpirun::~Mpirun() {
  for (const Source& source : {results_, remarks_}) close(source.descriptor);
}

bool Mpirun::attend(std::chrono::milliseconds moment) {
  // poll() passes over what is negative, and waits for nobody else then.
  pollfd waiting[] = {{results_.ended ? -1 : results_.descriptor, POLLIN, 0},
                      {remarks_.ended ? -1 : remarks_.descriptor, POLLIN, 0}};
  ::poll(waiting, 2, static_cast<int>(moment.count()));
  const bool ended = waitpid(pid_, &status_, WNOHANG) == pid_;
  pass_on();
  return !ended;
}

/// What there is, in parts, without waiting for more; not for ever, where a rank writes and writes.
template <class Take>
void Mpirun::read_parts(Source& source, const Take& take) {
  char buffer[4096];
  ssize_t count = 0;
  for (int n = 0; n < 64 && (count = read(source.descriptor, buffer, sizeof(buffer))) > 0; ++n)
    take(std::string_view(buffer, static_cast<size_t>(count)));
  source.ended = count == 0;
}

void Mpirun::pass_on() {
  constexpr size_t kMostText = 1 << 16;
  read_parts(results_, write_out);
  flush_out();
  read_parts(remarks_, [this](std::string_view part) {
    write_error(part);
    text_ += part;
    if (text_.size() > 2 * kMostText) text_.erase(0, text_.size() - kMostText);
  });
}

}  // namespace tessera::mpi
