#pragma once
// Ranks bound to cores of their own. A thread that the system moves from core to core leaves its
// caches behind, and on several NUMA nodes its memory. Each rank gets a share of the machine
// (cores.h), never less than it has threads; within it the system moves its threads as it likes.
// The threads that a rank starts have its share, too: those of its kernels, and the one that reads
// ahead.
//
// Who has set an affinity before us knows better: taskset, a batch system, a container's cpuset, a
// launcher, or OpenMP's variables. Then nothing is bound, unless the user asks for it.
//
// Example:
//   const std::vector<Cpus> shares = choose_cpus({.ranks = 2, .threads = 4}, Bind::kAuto);
//   on rank 1's thread:  const BoundThread bound(share_of(shares, 1));

#include <string>
#include <vector>

#include "tessera/runtime/cores.h"

namespace tessera {

enum class Bind { kAuto, kOn, kOff };

/// By the names auto, on and off. Throws InvalidInput.
Bind parse_bind(const std::string& name);

/// The ranks that share this machine.
struct RanksHere {
  int ranks = 1;
  int threads = 1;             // of each
  bool are_processes = false;  // whose masks may differ
};

/// What there is to share.
struct CpusHere {
  bool can_bind = true;         // by a call that the system has and allows
  Cpus allowed;                 // to this thread
  int online = 0;               // of the machine
  std::string bound_by_openmp;  // the variable that says so; empty: none
};
CpusHere cpus_here();

/// Why these ranks cannot be bound, or should not be without having been asked; empty: they can.
std::string why_not_bound(const RanksHere& ranks, const CpusHere& cpus, Bind bind);

/// The share of each rank; empty where ranks are left alone. Throws InvalidInput with the reason
/// where binding was asked for and cannot be done.
std::vector<Cpus> choose_cpus(const RanksHere& ranks, Bind bind);

/// None where nothing is shared out.
Cpus share_of(const std::vector<Cpus>& shares, int rank);

/// While it lives, this thread and those that it starts run on these CPUs; on any where none are
/// given. What the system refuses is left alone.
class BoundThread {
 public:
  explicit BoundThread(const Cpus& cpus);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  Cpus before_;  // empty: nothing was changed
};

}  // namespace tessera
