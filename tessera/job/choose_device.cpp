#include "tessera/job/choose_device.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/mpi/environment.h"

namespace tessera {
namespace {

constexpr std::string_view kNumbered = "cuda:";

/// Of "cuda:1"; none of "cuda".
std::optional<int> parse_index(const std::string& name) {
  if (name == "cuda") return {};
  const auto index = name.starts_with(kNumbered)
                         ? read_number<int>(std::string_view(name).substr(kNumbered.size()))
                         : std::nullopt;
  if (!index || *index < 0)
    throw_error<InvalidInput>("[--device] {} is not known; use cpu, cuda, cuda:0 or auto", name);
  return index;
}

void check_there(std::optional<int> index) {
  if (const std::string reason = why_no_gpu(); !reason.empty())
    throw_error<InvalidInput>("[--device] cuda: {}", reason);
  if (index && *index >= num_gpus())
    throw_error<InvalidInput>(
        "[--device] cuda:{}: this machine has {}, from cuda:0 on; `tessera devices` lists them",
        *index, counted(num_gpus(), "GPU"));
}

bool are_processes(const Job& job) { return transport_name(job.launch) != "threads"; }

void check_all_alike(const DeviceChoice& own, Transport& transport) {
  double computing[] = {own.type == at::kCPU ? 1.0 : 0.0, own.type == at::kCPU ? 0.0 : 1.0};
  AllReduce sum(transport, everyone(transport.size()), computing, 2, SumType::kFloat64);
  sum.finish();
  if (computing[0] > 0 && computing[1] > 0)
    throw_error<InvalidInput>(
        "[--device] {} on a CPU and {} on a GPU: images lie in another order there; give --device "
        "cpu, or start all on machines with GPUs",
        counted(static_cast<int64_t>(computing[0]), "worker"),
        counted(static_cast<int64_t>(computing[1]), "worker"));
}

}  // namespace

DeviceChoice choose_device(const JobConfig& config) {
  DeviceChoice choice{.tf32 = config.tf32, .deterministic = config.deterministic};
  if (config.device == "cpu") return choice;
  if (config.device == "auto") {
    if (why_no_gpu().empty()) choice.type = at::kCUDA;
    return choice;
  }
  choice.index = parse_index(config.device);
  choice.type = at::kCUDA;
  check_there(choice.index);
  return choice;
}

DeviceChoice share_out(DeviceChoice choice, SharingRanks ranks, int num_gpus,
                       int64_t memory_limit) {
  if (choice.type == at::kCPU) return choice;
  int sharing = ranks.in_process;
  if (!choice.index) {
    choice.index = ranks.place % num_gpus;
    const int left = ranks.in_process % num_gpus;
    sharing = ranks.in_process / num_gpus + (*choice.index < left ? 1 : 0);
  }
  choice.most_bytes = memory_limit * std::max(sharing, 1);
  return choice;
}

DeviceChoice device_of_rank(const Job& job, int rank, int num_ranks) {
  if (job.device.type == at::kCPU) return job.device;
  SharingRanks ranks{rank, num_ranks};
  if (are_processes(job)) ranks = {mpi::local_rank().value_or(rank), 1};
  return share_out(job.device, ranks, num_gpus(), job.memory_limit.value_or(0));
}

DeviceChoice agreed_device(const Job& job, Transport& transport) {
  if (are_processes(job)) check_all_alike(job.device, transport);
  return device_of_rank(job, transport.rank(), transport.size());
}

std::unique_ptr<Device> open_rank_device(const Job& job, Transport& transport) {
  return open_device(agreed_device(job, transport), transport.rank());
}

}  // namespace tessera
