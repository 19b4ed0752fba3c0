#include "tessera/runtime/binding.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/runtime/affinity.h"

namespace tessera {
namespace {

/// These make OpenMP's runtime bind its threads by itself, or say where to.
std::string variable_of_openmp() {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    if (lower_case(value) != "false" && lower_case(value) != "disabled") return name;
  }
  return "";
}

std::string described(const RanksHere& ranks) {
  return fmt::format("{} with {}", counted(ranks.ranks, "worker"),
                     ranks.ranks == 1 ? counted(ranks.threads, "thread")
                                      : counted(ranks.threads, "thread") + " each");
}

}  // namespace

Bind parse_bind(const std::string& name) {
  if (name == "auto") return Bind::kAuto;
  if (name == "on") return Bind::kOn;
  if (name == "off") return Bind::kOff;
  throw_error<InvalidInput>("[--bind] {} is not known; use auto, on or off", name);
}

CpusHere cpus_here() {
  const Cpus allowed = thread_affinity();
  const bool can_bind = !allowed.empty() && set_thread_affinity(allowed);
  return {can_bind, allowed, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), variable_of_openmp()};
}

std::string why_not_bound(const RanksHere& ranks, const CpusHere& cpus, Bind bind) {
  if (bind == Bind::kOff) return "it is off";
  if (!cpus.can_bind) return "the system does not allow it";
  if (!cpus.bound_by_openmp.empty())
    return fmt::format("{} is set, by which OpenMP binds threads itself; unset it",
                       cpus.bound_by_openmp);
  const bool are_all = static_cast<int>(cpus.allowed.size()) >= cpus.online;
  if (!are_all && (bind == Bind::kAuto || ranks.are_processes))
    return fmt::format(
        "this process was started on the CPUs {} of {}, and whoever did that has bound it; leave "
        "it at that, or start it on all (mpirun --bind-to none, srun --cpu-bind=none)",
        to_text(cpus.allowed), cpus.online);
  const int64_t needed = int64_t{ranks.ranks} * ranks.threads;
  if (needed > static_cast<int64_t>(cpus.allowed.size()))
    return fmt::format("{} need {}, and there {} {}; use fewer --workers or --threads",
                       described(ranks), counted(needed, "CPU"),
                       cpus.allowed.size() == 1 ? "is" : "are", cpus.allowed.size());
  return "";
}

std::vector<Cpus> choose_cpus(const RanksHere& ranks, Bind bind) {
  if (ranks.ranks == 1 && bind == Bind::kAuto) return {};  // its share is what it has
  const CpusHere cpus = cpus_here();
  const std::string why_not = why_not_bound(ranks, cpus, bind);
  if (why_not.empty())
    return share_cores(read_cores(cpus.allowed, "/sys/devices/system"), ranks.ranks, ranks.threads);
  if (bind == Bind::kOn) throw_error<InvalidInput>("[--bind] workers cannot be bound: {}", why_not);
  return {};
}

Cpus share_of(const std::vector<Cpus>& shares, int rank) {
  return shares.empty() ? Cpus() : shares[static_cast<size_t>(rank)];
}

BoundThread::BoundThread(const Cpus& cpus) {
  if (cpus.empty()) return;
  Cpus before = thread_affinity();
  if (set_thread_affinity(cpus)) before_ = std::move(before);
}

BoundThread::~BoundThread() {
  if (!before_.empty()) set_thread_affinity(before_);
}

}  // namespace tessera
