#include "tessera/train/machine.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>

#include "tessera/base/cpu.h"

namespace tessera {

Machine this_machine() {
  Machine machine;
  char name[256] = {};
  machine.hostname = gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
  machine.cpu_model = cpu_model();
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
