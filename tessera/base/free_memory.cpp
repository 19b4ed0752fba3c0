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

/// What a limit leaves after the pages that are in use.
int64_t left_of(decltype(RLIMIT_AS) resource, int64_t pages_in_use) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const int64_t in_use = pages_in_use * sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - in_use);
}

}  // namespace

int64_t free_address_space() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, shared = 0, text = 0, unused = 0, data = 0;
  file >> all >> resident >> shared >> text >> unused >> data;
  return std::min(left_of(RLIMIT_AS, all), left_of(RLIMIT_DATA, data));
}

int64_t free_memory() { return std::min(free_on_machine(), free_address_space()); }

}  // namespace tessera
