// A closed child can compute and answer, and nothing else, whatever runs in it.

#include "tessera/import/closed_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::closed_child_test {
namespace {

using Work = std::function<void(const SendBytes&)>;

/// Answers with the bytes that the child sent.
std::string ask(const Work& work, const ChildLimits& limits = {},
                WithoutFilter without_filter = WithoutFilter::kRefuse) {
  std::string answer;
  ask_closed_child("model.pt", limits, without_filter, work, [&](ChildAnswer& received) {
    char block[256];
    while (const size_t bytes = received.read_some(block, sizeof(block)))
      answer.append(block, bytes);
  });
  return answer;
}

/// What a system call gave in the child: "0", or the name of the error.
std::string result_of(const std::function<long()>& call) {
  return ask([&](const SendBytes& send) {
    errno = 0;
    const long result = call();
    const std::string text = result < 0 ? strerrorname_np(errno) : std::to_string(result);
    send(text.data(), text.size());
  });
}

std::string refusal_of(const Work& work, const ChildLimits& limits = {}) {
  return refusal([&] { ask(work, limits); });
}

/// The child was ended for what it tried.
bool is_stopped(const std::function<void()>& deed) {
  return has(refusal_of([&](const SendBytes&) { deed(); }), "Do not trust this file");
}

TEST(ClosedChild, AnswersAndGivesItsErrorsBack) {
  EXPECT_EQ(ask([](const SendBytes& send) {
              for (int i = 0; i < 1000; ++i) send("0123456789", 10);
            }).size(),
            10000u);
  EXPECT_EQ(refusal_of([](const SendBytes&) { throw InvalidInput("[here] wrong"); }),
            "[here] wrong");
  EXPECT_THROW(ask([](const SendBytes&) { throw Unsupported("no"); }), Unsupported);
  EXPECT_TRUE(has(refusal_of([](const SendBytes&) { throw std::runtime_error("odd\nmore"); }),
                  "[model.pt] cannot be read: odd"));
}

TEST(ClosedChild, CannotChangeFiles) {
  const ScratchFolder folder;
  const std::string victim = folder / "victim";
  write_bytes(victim, "old");
  const std::string other = folder / "other";
  EXPECT_TRUE(is_stopped([&] { ::open(victim.c_str(), O_WRONLY | O_TRUNC); }));
  EXPECT_TRUE(is_stopped([&] { ::open(victim.c_str(), O_RDWR); }));
  EXPECT_TRUE(is_stopped([&] { ::open(other.c_str(), O_RDONLY | O_CREAT, 0666); }));
  EXPECT_TRUE(is_stopped([&] { ::syscall(SYS_creat, other.c_str(), 0666); }));
  EXPECT_TRUE(is_stopped([&] { ::unlink(victim.c_str()); }));
  EXPECT_TRUE(is_stopped([&] { ::rename(victim.c_str(), other.c_str()); }));
  EXPECT_TRUE(is_stopped([&] { ::syscall(SYS_truncate, victim.c_str(), 0); }));
  EXPECT_TRUE(is_stopped([&] { ::symlink(victim.c_str(), other.c_str()); }));
  EXPECT_TRUE(is_stopped([&] { ::link(victim.c_str(), other.c_str()); }));
  EXPECT_TRUE(is_stopped([&] { ::mkdir(other.c_str(), 0777); }));
  EXPECT_TRUE(is_stopped([&] { ::chmod(victim.c_str(), 0); }));
  EXPECT_EQ(read_bytes(victim), "old");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"victim"}));
}

TEST(ClosedChild, CannotReadFilesOrWhatThisProcessHasOpen) {
  EXPECT_EQ(result_of([] { return ::open("/etc/hostname", O_RDONLY); }), "EPERM");
  const ScratchFolder folder;
  write_bytes(folder / "open", "");
  const int open_here = ::open((folder / "open").c_str(), O_WRONLY);
  ASSERT_GE(open_here, 0);
  const std::string result = result_of([&] { return ::write(open_here, "x", 1); });
  EXPECT_TRUE(result == "EPERM" || open_here <= 4) << result;  // 3 and 4 are the child's own pipes
  ::close(open_here);
  EXPECT_EQ(read_bytes(folder / "open"), "");
  EXPECT_EQ(result_of([] { return ::write(STDERR_FILENO, "x", 1); }), "EPERM");
}

TEST(ClosedChild, CannotReachTheNetworkOrOtherProcesses) {
  EXPECT_TRUE(is_stopped([] { ::socket(AF_INET, SOCK_STREAM, 0); }));
  EXPECT_TRUE(is_stopped([] { ::socket(AF_UNIX, SOCK_DGRAM, 0); }));
  EXPECT_TRUE(is_stopped([] { ::kill(::getppid(), SIGTERM); }));
  EXPECT_EQ(result_of([] { return ::syscall(SYS_tgkill, 1, 1, 0); }), "EPERM");
  EXPECT_EQ(result_of([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }), "EPERM");
}

TEST(ClosedChild, CannotStartProgramsOrThreads) {
  EXPECT_TRUE(is_stopped([] {
    const char* const arguments[] = {"/bin/true", nullptr};
    ::execv(arguments[0], const_cast<char* const*>(arguments));
  }));
  EXPECT_EQ(result_of([] { return ::fork(); }), "EPERM");
  EXPECT_TRUE(
      has(refusal_of([](const SendBytes&) { std::thread([] {}).join(); }), "cannot be read: "));
}

TEST(ClosedChild, CannotMakeCodeOutOfData) {
  EXPECT_EQ(result_of([] {
              void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return memory == MAP_FAILED ? -1L : 0L;
            }),
            "EPERM");
  EXPECT_EQ(result_of([] {
              void* memory =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return static_cast<long>(::mprotect(memory, 4096, PROT_READ | PROT_EXEC));
            }),
            "EPERM");
}

TEST(ClosedChild, EndsWhenItsTimeIsUp) {
  ChildLimits limits;
  limits.cpu_seconds = 1;
  volatile bool forever = true;
  EXPECT_TRUE(has(refusal_of(
                      [&](const SendBytes&) {
                        while (forever) {
                        }
                      },
                      limits),
                  "stopped after 1 CPU seconds"));
  limits.cpu_seconds = 100;
  limits.wall_seconds = 1;
  const std::string waits = refusal_of(
      [](const SendBytes&) {
        int never = 0;
        ::syscall(SYS_futex, &never, 0 /*FUTEX_WAIT*/, 0, nullptr, nullptr, 0);
      },
      limits);
  EXPECT_TRUE(has(waits, "stopped after 1 seconds")) << waits;
}

TEST(ClosedChild, HasALimitOfMemory) {
  ChildLimits limits;
  limits.memory_bytes = 64 << 20;
  const std::string words = refusal_of(
      [](const SendBytes& send) {
        const std::vector<char> block(size_t{1} << 30, 1);
        send(block.data(), 1);
      },
      limits);
  EXPECT_TRUE(has(words, "more memory than a model file may")) << words;
}

TEST(ClosedChild, AnswersThatAreNotTakenAreErrors) {
  const auto ask_and_take = [](const Work& work, size_t taken) {
    return refusal([&] {
      ask_closed_child("model.pt", {}, WithoutFilter::kRefuse, work, [&](ChildAnswer& answer) {
        char byte;
        for (size_t i = 0; i < taken; ++i)
          if (answer.read_some(&byte, 1) == 0) throw InvalidInput("it ends too early");
      });
    });
  };
  const Work three_bytes = [](const SendBytes& send) { send("abc", 3); };
  EXPECT_EQ(ask_and_take(three_bytes, 3), "");
  EXPECT_TRUE(has(ask_and_take(three_bytes, 4), "it ends too early"));
  EXPECT_TRUE(has(ask_and_take(three_bytes, 2), "it goes on after its end"));
  // The child's own word comes first.
  const Work fails = [](const SendBytes& send) {
    send("abc", 3);
    throw InvalidInput("[model.pt] no");
  };
  EXPECT_EQ(ask_and_take(fails, 4), "[model.pt] no");
}

/// A file whose code runs when LibTorch reads it: shown to the reader without any check.
std::string archive_with_code(const std::string& deed) {
  torch::jit::Module net("net");
  net.define("def forward(self, x):\n  return x\n");
  net.define("def __getstate__(self) -> int:\n  return 1\n");
  net.define("def __setstate__(self, state: int) -> None:\n  " + deed + "\n");
  std::ostringstream bytes;
  net.save(bytes);
  return bytes.str();
}

TEST(ClosedChild, CodeOfAModelFileRunsThereAndDoesNoHarm) {
  const ScratchFolder folder;
  const std::string marker = folder / "marker";
  const auto load = [](const std::string& archive) {
    std::istringstream bytes(archive);
    torch::jit::load(bytes);
  };
  const std::string writes = archive_with_code("torch.save(state, \"" + marker + "\")");
  EXPECT_TRUE(is_stopped([&] { load(writes); }));
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
  // Without the child it does run: the deed is a real one.
  load(writes);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"marker"}));

  ChildLimits limits;
  limits.cpu_seconds = 1;
  const std::string endless = archive_with_code("while True:\n    state = state + 1");
  EXPECT_TRUE(has(refusal_of([&](const SendBytes&) { load(endless); }, limits), "CPU seconds"));
}

/// The system refuses a filter from now on.
void forbid_filters() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{6, code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(ClosedChild, WithoutFiltersItRefusesUnlessTrusted) {
  const auto in_such_a_system = [](WithoutFilter without_filter) {
    return text_of_child([=] {
      forbid_filters();
      std::string answer;
      const std::string refused = refusal(
          [&] { answer = ask([](const SendBytes& send) { send("ok", 2); }, {}, without_filter); });
      return answer + refused;
    });
  };
  EXPECT_TRUE(has(in_such_a_system(WithoutFilter::kRefuse), "give --trust-model"));
  EXPECT_EQ(in_such_a_system(WithoutFilter::kGoOn), "ok");
}

}  // namespace
}  // namespace tessera::closed_child_test
