#pragma once
// The cores of this machine, and how the ranks of a job share them: blocks of whole cores, no block
// on two NUMA nodes where that can be had. A rank's threads then find in their caches what they
// left there, and its pages lie on the node of the thread that touched them first.
//
// Pure but for read_cores(), which reads text files that a test can write.
//
// Example: four ranks on two nodes with four cores of two CPUs each get
//   0-1,8-9   2-3,10-11   4-5,12-13   6-7,14-15

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Numbers of CPUs (as the system counts them, hardware threads), ascending.
using Cpus = std::vector<int>;
constexpr int kMostCpus = 1 << 16;

/// "0-3,8" and back; nothing for a text of another form.
std::string to_text(const Cpus& cpus);
std::optional<Cpus> parse_cpus(const std::string& text);

struct Core {
  int node = 0;
  Cpus cpus;  // which share its units of arithmetic
  bool operator==(const Core&) const = default;
};

/// The cores of these CPUs, node after node, by Linux's folder /sys/devices/system or one like it.
/// What is not written there, as in some containers: a CPU is a core, and all are on one node.
std::vector<Core> read_cores(const Cpus& cpus, const std::string& folder);

/// The CPUs of each rank: all of them together, in order, with at least `threads` for every rank,
/// on as many cores where there are enough. Empty where `cores` have fewer CPUs than that.
std::vector<Cpus> share_cores(const std::vector<Core>& cores, int ranks, int threads);

}  // namespace tessera
