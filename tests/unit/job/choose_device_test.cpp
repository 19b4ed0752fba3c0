// Which device a rank computes on, as the configuration, the machine and the launcher say.

#include "tessera/job/choose_device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tessera/comm/mpi/environment.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/refusal.h"

namespace tessera::choose_device_test {
namespace {

JobConfig with_device(const std::string& device) {
  JobConfig config;
  config.model = "unet2d:base=2,depth=2";
  config.input = "2x3x16x16";
  config.device = device;
  return config;
}

TEST(ChooseDevice, TheCpuIsThereForEverybody) {
  JobConfig config = with_device("cpu");
  config.tf32 = config.deterministic = true;
  const Job job = resolve_job(config);
  EXPECT_EQ(job.device.type, at::kCPU);
  EXPECT_TRUE(job.device.tf32);
  EXPECT_TRUE(job.device.deterministic);
  EXPECT_EQ(job.numbers().device, at::kCPU);
}

TEST(ChooseDevice, AutoTakesAGpuWhereThereIsOne) {
  EXPECT_EQ(resolve_job(with_device("auto")).device.type, num_gpus() > 0 ? at::kCUDA : at::kCPU);
  EXPECT_EQ(resolve_job(with_device(JobConfig().device)).device.type,
            num_gpus() > 0 ? at::kCUDA : at::kCPU);
}

TEST(ChooseDevice, RefusesWhatIsNoDevice) {
  for (const char* name : {"gpu", "", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cpu:0"})
    expect_refusal([&] { choose_device(with_device(name)); }, "use cpu, cuda, cuda:0 or auto");
}

TEST(ChooseDevice, AGpuThatIsNotThereIsRefusedBeforeTheModelIsRead) {
  JobConfig config = with_device("cuda:" + std::to_string(num_gpus()));
  config.model = "no_such_model";
  expect_refusal([&] { resolve_job(config); }, "[--device] cuda");
  if (num_gpus() > 0) return;
  for (const char* name : {"cuda", "cuda:0"}) {
    config.device = name;
    EXPECT_EQ(refusal([&] { resolve_job(config); }), "[--device] cuda: " + why_no_gpu());
  }
}

/// Values of two bytes are the CPU's business only where it computes.
TEST(ChooseDevice, NarrowNumbersNeedTheCpuOnlyOnTheCpu) {
  ::setenv("TESSERA_CPU_WITHOUT_BF16", "1", 1);
  JobConfig config = with_device("cpu");
  config.dtype = "bf16";
  EXPECT_NE(message_of<Unsupported>([&] { resolve_job(config); }), "");
  if (num_gpus() > 0) {
    config.device = "cuda";
    EXPECT_EQ(message_of<Unsupported>([&] { resolve_job(config); }), "");
  }
  ::unsetenv("TESSERA_CPU_WITHOUT_BF16");
}

TEST(ShareOut, ThreadsTakeTheGpusInTurn) {
  const DeviceChoice any{.type = at::kCUDA};
  std::vector<int> indices;
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < 5; ++rank) {
    const DeviceChoice own = share_out(any, {rank, 5}, /*num_gpus=*/2, /*memory_limit=*/100);
    indices.push_back(own.index.value());
    bytes.push_back(own.most_bytes);
  }
  EXPECT_EQ(indices, (std::vector<int>{0, 1, 0, 1, 0}));
  // The limit is the process's on each GPU, and that of a rank is 100.
  EXPECT_EQ(bytes, (std::vector<int64_t>{300, 200, 300, 200, 300}));
}

TEST(ShareOut, AGpuThatIsNamedIsEverybodys) {
  const DeviceChoice second{.type = at::kCUDA, .index = 1};
  for (int rank = 0; rank < 3; ++rank) {
    const DeviceChoice own = share_out(second, {rank, 3}, /*num_gpus=*/2, /*memory_limit=*/100);
    EXPECT_EQ(own.index, 1);
    EXPECT_EQ(own.most_bytes, 300);
  }
}

TEST(ShareOut, AProcessHasALimitOfItsOwn) {
  const DeviceChoice own = share_out({.type = at::kCUDA}, {.place = 3, .in_process = 1},
                                     /*num_gpus=*/2, /*memory_limit=*/100);
  EXPECT_EQ(own.index, 1);
  EXPECT_EQ(own.most_bytes, 100);
}

TEST(ShareOut, MoreGpusThanRanksAndNoLimit) {
  const DeviceChoice own = share_out({.type = at::kCUDA}, {1, 2}, /*num_gpus=*/8, 0);
  EXPECT_EQ(own.index, 1);
  EXPECT_EQ(own.most_bytes, 0);
}

TEST(ShareOut, TheCpuHasNothingToShare) {
  const DeviceChoice own = share_out({}, {1, 2}, /*num_gpus=*/0, 100);
  EXPECT_EQ(own.type, at::kCPU);
  EXPECT_EQ(own.most_bytes, 0);
}

/// Processes on several machines, some of which have GPUs: images would travel in another order
/// than they are read in.
TEST(AgreedDevice, RanksOnCpusAndOnGpusAreRefusedTogether) {
  Job job = resolve_job(with_device("cpu"));
  job.launch.launch = "mpi";  // as far as sharing out goes
  const std::string message = refusal([&] {
    run_on_threads(3, 1, 10, [&](Transport& transport) {
      Job own = job;
      if (transport.rank() == 1) own.device.type = at::kCUDA;
      agreed_device(own, transport);
    });
  });
  EXPECT_NE(message.find("2 workers on a CPU and 1 worker on a GPU"), std::string::npos) << message;
  run_on_threads(3, 1, 10, [&](Transport& transport) {
    EXPECT_EQ(agreed_device(job, transport).type, at::kCPU);
  });
}

/// A variable of a launcher, for its life.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(LocalRank, EveryLauncherSaysItByAnotherName) {
  EXPECT_EQ(mpi::local_rank(), std::nullopt);
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "LOCAL_RANK", "SLURM_LOCALID"}) {
    const Variable launcher(name, "3");
    EXPECT_EQ(mpi::local_rank(), 3) << name;
  }
  for (const char* text : {"", "-1", "x", "1 "}) {
    const Variable stray("SLURM_LOCALID", text);
    EXPECT_EQ(mpi::local_rank(), std::nullopt) << text;
  }
}

/// mpirun inside a batch script of SLURM: the script's own variable is in all that it starts.
TEST(LocalRank, TheInnermostLauncherCounts) {
  const Variable of_script("SLURM_LOCALID", "0");
  const Variable of_mpirun("OMPI_COMM_WORLD_LOCAL_RANK", "2");
  EXPECT_EQ(mpi::local_rank(), 2);
}

TEST(Devices, TheCpuIsTheFirst) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_EQ(devices.size(), static_cast<size_t>(1 + num_gpus()));
  EXPECT_EQ(devices[0].name, "cpu");
  EXPECT_GT(devices[0].bytes, 0);
  EXPECT_GT(devices[0].free_bytes, 0);
  EXPECT_EQ(why_no_gpu().empty(), num_gpus() > 0);
  EXPECT_EQ(name_of(at::kCPU), "cpu");
}

}  // namespace
}  // namespace tessera::choose_device_test
