#include "tessera/base/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tessera {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int64_t free_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    file.ignore(64, '\n');
  }
  return kUnlimited;
}

/// Bytes of this process, by /proc/self/statm.
struct Mapped {
  int64_t all = 0;
  int64_t data = 0;
};

Mapped mapped() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, shared = 0, text = 0, unused = 0, data = 0;
  file >> all >> resident >> shared >> text >> unused >> data;
  return {all * sysconf(_SC_PAGESIZE), data * sysconf(_SC_PAGESIZE)};
}

/// What a limit leaves after what is in use.
int64_t left_of(decltype(RLIMIT_AS) resource, int64_t in_use) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - in_use);
}

}  // namespace

int64_t address_space() { return mapped().all; }

int64_t free_address_space() {
  const auto [all, data] = mapped();
  return std::min(left_of(RLIMIT_AS, all), left_of(RLIMIT_DATA, data));
}

int64_t free_memory() { return std::min(free_on_machine(), free_address_space()); }

}  // namespace tessera
