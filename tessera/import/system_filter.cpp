#include "tessera/import/system_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

namespace tessera {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;  // not known here: no process can be closed in
#endif

// Memory, time, locks and the end.
constexpr int kAllowed[] = {
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
    SYS_sched_yield,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrusage,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_close,
    SYS_fstat,
    SYS_exit,
    SYS_exit_group,
    SYS_restart_syscall,
};

// Deeds. A library may try other calls by the way (a look at /sys, a thread), and goes on without.
constexpr int kDeeds[] = {
#ifdef SYS_open
    SYS_creat,
    SYS_unlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
    SYS_mknod,
    SYS_fork,
    SYS_vfork,
#endif
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_mknodat,
    SYS_truncate,
    SYS_ftruncate,
    SYS_mount,
    SYS_chdir,
    SYS_chroot,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_sendto,
    SYS_sendmsg,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_kill,
    SYS_tkill,
    SYS_process_vm_writev,
    SYS_process_vm_readv,
    SYS_bpf,
    SYS_memfd_create,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_reboot,
    SYS_setuid,
};

class Filter {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void give(uint32_t answer) { add(BPF_RET | BPF_K, answer); }
  /// The next `steps` instructions are left out unless the loaded number is `value`.
  void unless_equal_skip(uint32_t value, uint8_t steps) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps));
  }
  /// ... unless it has one of the bits.
  void unless_any_bit_skip(uint32_t bits, uint8_t steps) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, steps));
  }
  void unless_at_least_skip(uint32_t value, uint8_t steps) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, steps));
  }
  void answer(int call, uint32_t answer) {
    unless_equal_skip(static_cast<uint32_t>(call), 1);
    give(answer);
  }
  std::vector<sock_filter>& code() { return code_; }

 private:
  void add(uint16_t what, uint32_t value) { code_.push_back(BPF_STMT(what, value)); }
  std::vector<sock_filter> code_;
};

// The lower half of an argument. Flags and descriptors are 32 bits wide.
size_t argument(int index) { return offsetof(seccomp_data, args) + 8 * index; }

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kEndIt = SECCOMP_RET_KILL_PROCESS;

/// Each block ends with an answer, so it may leave another number loaded.
std::vector<sock_filter> make_filter(const std::vector<int>& writable) {
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.unless_equal_skip(kMachine, 1);
  filter.code().push_back(BPF_STMT(BPF_JMP | BPF_JA, 1));
  filter.give(kEndIt);
  filter.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  constexpr uint32_t kX32Calls = 0x40000000;  // the same calls by other numbers
  filter.unless_at_least_skip(kX32Calls, 1);
  filter.give(kEndIt);
#endif
  for (int call : kAllowed) filter.answer(call, SECCOMP_RET_ALLOW);
  for (int call : kDeeds) filter.answer(call, kEndIt);
  for (int call : {SYS_mmap, SYS_mprotect}) {
    filter.unless_equal_skip(static_cast<uint32_t>(call), 4);
    filter.load(argument(2));
    filter.unless_any_bit_skip(PROT_EXEC, 1);
    filter.give(kRefuse);
    filter.give(SECCOMP_RET_ALLOW);
  }
  filter.unless_equal_skip(SYS_openat, 4);
  filter.load(argument(2));
  filter.unless_any_bit_skip(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 1);
  filter.give(kEndIt);
  filter.give(kRefuse);
#ifdef SYS_open
  filter.unless_equal_skip(SYS_open, 4);
  filter.load(argument(1));
  filter.unless_any_bit_skip(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 1);
  filter.give(kEndIt);
  filter.give(kRefuse);
#endif
  filter.unless_equal_skip(SYS_write, static_cast<uint8_t>(2 + 2 * writable.size()));
  filter.load(argument(0));
  for (int descriptor : writable) filter.answer(descriptor, SECCOMP_RET_ALLOW);
  filter.give(kRefuse);
  // The C library tries this one first and falls back to clone only on this answer.
  filter.answer(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  filter.give(kRefuse);
  return std::move(filter.code());
}

}  // namespace

bool close_in(const std::vector<int>& writable) {
  if (kMachine == 0) return false;
  std::vector<sock_filter> code = make_filter(writable);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace tessera
