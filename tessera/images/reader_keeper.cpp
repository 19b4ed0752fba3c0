#include "tessera/images/reader_keeper.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/images/reader_service.h"

namespace tessera {
namespace {

constexpr int kKeptSocket = 3;  // the only descriptor of a child beside the standard ones

[[noreturn]] void throw_no_process(int error_number) {
  throw_error<OutOfMemory>(
      "[data] no process to read images in: {}; raise the limit on processes (ulimit -u) or on "
      "open files (ulimit -n)",
      std::strerror(error_number));
}

struct SocketPair {
  int ends[2] = {-1, -1};
  SocketPair() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_no_process(errno);
  }
};

/// What the parent has open, its terminal included, is not the child's business.
void keep_only_socket(int socket) {
  const int high = ::fcntl(socket, F_DUPFD, 10);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  ::dup2(high, kKeptSocket);
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, kKeptSocket + 1, ~0u, 0) == 0) return;
#endif
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  const int last = static_cast<int>(std::min<rlim_t>(most.rlim_cur, 1 << 16));
  for (int descriptor = kKeptSocket + 1; descriptor < last; ++descriptor) ::close(descriptor);
}

void forget_parent() {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGALRM})
    ::signal(number, SIG_DFL);
  // These may go to all processes of a job. The parent wants to finish its step then, and reads
  // meanwhile; when it ends, so do its children.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_IGN);  // nobody waits for readers
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

/// The message and its descriptor; negative where the parent is gone.
int receive_socket(int from) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got <= 0 || header == nullptr) return -1;
  int socket = -1;
  std::memcpy(&socket, CMSG_DATA(header), sizeof(socket));
  return socket;
}

bool send_socket(int to, int socket) {
  char byte = 'r';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &socket, sizeof(socket));
  return ::sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

[[noreturn]] void run_keeper(int socket) {
  forget_parent();
  keep_only_socket(socket);
  for (;;) {
    const int reader = receive_socket(kKeptSocket);
    if (reader < 0) ::_exit(0);
    if (::fork() == 0) {
      keep_only_socket(reader);
      serve_reader_requests(kKeptSocket);
      ::_exit(0);
    }
    ::close(reader);
  }
}

}  // namespace

ReaderKeeper::ReaderKeeper() : owner_(::getpid()) {
  const SocketPair pair;
  const pid_t pid = ::fork();
  if (pid == 0) run_keeper(pair.ends[1]);
  const int error_number = errno;
  ::close(pair.ends[1]);
  if (pid < 0) {
    ::close(pair.ends[0]);
    throw_no_process(error_number);
  }
  keeper_ = pid;
  socket_ = pair.ends[0];
}

ReaderKeeper::~ReaderKeeper() {
  ::close(socket_);
  if (!is_of_this_process()) return;
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool ReaderKeeper::is_of_this_process() const { return owner_ == ::getpid(); }

int ReaderKeeper::new_reader() {
  const SocketPair pair;
  const bool sent = send_socket(socket_, pair.ends[1]);
  const int error_number = errno;
  ::close(pair.ends[1]);
  if (!sent) {
    ::close(pair.ends[0]);
    throw_no_process(error_number);
  }
  return pair.ends[0];
}

}  // namespace tessera
