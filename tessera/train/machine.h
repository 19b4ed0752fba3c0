#pragma once
// What a run ran with: the machine and the versions of what was built. For run.json and reports.

#include <cstdint>
#include <string>

namespace tessera {

struct Machine {
  std::string hostname;
  std::string cpu_model;     // "unknown" where the system does not say
  int cores = 0;             // that this process may use
  int64_t memory_bytes = 0;  // of the machine; 0: unknown
};
Machine this_machine();

struct Versions {
  std::string tessera;
  std::string libtorch;
  std::string compiler;
};
Versions versions();

/// Now, in UTC: "2024-05-31T12:00:00Z".
std::string utc_time();

}  // namespace tessera
