#include "tessera/base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace tessera {

std::string cpu_model() {
  const std::string key = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "unknown" : line.substr(begin);
  }
  return "unknown";
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(getpid(), sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::thread::hardware_concurrency());
}

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && std::getenv("TESSERA_CPU_WITHOUT_BF16") == nullptr;
#else
  return false;
#endif
}

}  // namespace tessera
