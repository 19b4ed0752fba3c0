#include "tessera/train/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <thread>

namespace tessera {
namespace {

/// The value behind "key<spaces>:" in a file of /proc; empty where there is none.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// Without those that a batch system or taskset withholds; of the process, since a worker's thread
/// may be bound to fewer.
int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(getpid(), sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

Machine this_machine() {
  Machine machine;
  char name[256] = {};
  machine.hostname = gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
  machine.cpu_model = proc_value("/proc/cpuinfo", "model name");
  if (machine.cpu_model.empty()) machine.cpu_model = "unknown";
  machine.cores = usable_cores();
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page_bytes > 0) machine.memory_bytes = pages * page_bytes;
  return machine;
}

Versions versions() {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("gcc {}", __VERSION__);
#endif
  return {TESSERA_VERSION, TORCH_VERSION, compiler};
}

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace tessera
