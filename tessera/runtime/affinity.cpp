#include "tessera/runtime/affinity.h"

#if defined(__linux__)

#include <sched.h>

namespace tessera {
namespace {

/// As many words as the kernel wants; the calls' own type has place for 1024 CPUs.
struct Mask {
  explicit Mask(int cpus) : bytes(CPU_ALLOC_SIZE(cpus)), words(bytes / sizeof(cpu_set_t) + 1) {
    CPU_ZERO_S(bytes, words.data());
  }
  size_t bytes;
  std::vector<cpu_set_t> words;
};

}  // namespace

Cpus thread_affinity() {
  for (int most = 1024; most <= kMostCpus; most *= 2) {  // too few is EINVAL
    Mask mask(most);
    if (sched_getaffinity(0, mask.bytes, mask.words.data()) != 0) continue;
    Cpus cpus;
    for (int cpu = 0; cpu < most; ++cpu)
      if (CPU_ISSET_S(cpu, mask.bytes, mask.words.data())) cpus.push_back(cpu);
    return cpus;
  }
  return {};
}

bool set_thread_affinity(const Cpus& cpus) {
  Mask mask(cpus.empty() ? 1 : cpus.back() + 1);
  for (const int cpu : cpus) CPU_SET_S(cpu, mask.bytes, mask.words.data());
  return sched_setaffinity(0, mask.bytes, mask.words.data()) == 0;
}

}  // namespace tessera

#else

namespace tessera {

Cpus thread_affinity() { return {}; }
bool set_thread_affinity(const Cpus&) { return false; }

}  // namespace tessera

#endif
