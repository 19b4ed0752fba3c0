#pragma once
// Which device each rank of a job computes on: what the configuration asks for and this machine
// has, shared out among the ranks that live here. Ranks that are threads of a process take its GPUs
// in turn; processes that a launcher has started take them by their places on their machines.
//
//   GPUs      0        1
//   threads   0, 2     1, 3      each GPU's limit is that of its two ranks together
//   mpirun    0, 2     1, 3      each process has its own limit

#include <memory>

#include "tessera/comm/transport.h"
#include "tessera/job/job.h"
#include "tessera/runtime/device.h"

namespace tessera {

/// What --device, --tf32 and --deterministic ask for. Throws InvalidInput with the reason where
/// this machine, or this build, has no such device.
DeviceChoice choose_device(const JobConfig& config);

/// The ranks among which the GPUs of a machine are shared out.
struct SharingRanks {
  int place = 0;       // of this rank among those of its machine
  int in_process = 1;  // ranks that are threads of its process, from place 0 on
};

/// The GPU of one rank, where the choice names none, and what all ranks of its process that share
/// it may take together: `memory_limit` each, 0 for no limit.
DeviceChoice share_out(DeviceChoice choice, SharingRanks ranks, int num_gpus, int64_t memory_limit);

/// The device of one of `num_ranks` ranks of this machine.
DeviceChoice device_of_rank(const Job& job, int rank, int num_ranks);

/// The device of the calling thread's rank. Collective over all ranks where they are processes: 2
/// numbers are summed, for those on CPUs and those on GPUs do not understand each other. Throws
/// InvalidInput where there are both.
DeviceChoice agreed_device(const Job& job, Transport& transport);
std::unique_ptr<Device> open_rank_device(const Job& job, Transport& transport);

}  // namespace tessera
