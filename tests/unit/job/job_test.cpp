#include "tessera/job/job.h"
#include "tessera/graph/number_type.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/job/small_job.h"
#include "tests/unit/refusal.h"

namespace tessera::job_test {
namespace {

JobConfig of_small_unet() {
  JobConfig config;
  config.model = "unet2d:base=2,depth=2";
  config.input = "4x3x16x16";
  return config;
}

TEST(ResolveJob, RefusesNoModel) {
  EXPECT_EQ(refusal([] { resolve_job({}); }),
            "[MODEL] no model is given; name one, such as unet2d");
}

TEST(ResolveJob, TheElementTypeIsTheCallersUnlessGiven) {
  JobConfig config = of_small_unet();
  EXPECT_EQ(resolve_job(config).real, at::kFloat);
  EXPECT_EQ(resolve_job(config, at::kDouble).real, at::kDouble);
  config.dtype = "float32";
  EXPECT_EQ(resolve_job(config, at::kDouble).real, at::kFloat);
  config.dtype = "float64";
  EXPECT_EQ(resolve_job(config).real, at::kDouble);
}

TEST(ResolveJob, TheMemoryLimitIsInBytes) {
  JobConfig config = of_small_unet();
  EXPECT_EQ(resolve_job(config).memory_limit, std::nullopt);
  config.memory = "3KiB";
  EXPECT_EQ(resolve_job(config).memory_limit, 3072);
  config.memory = "plenty";
  expect_refusal([&] { resolve_job(config); }, "--memory");
}

TEST(ResolveJob, BatchNormIsByMicroBatchesWhereThatIsAskedFor) {
  const auto parts = [](const JobConfig& config) {
    const Job job = resolve_job(config);
    for (const Node& node : job.graph().nodes())
      if (node.op->batch_parts() > 0) return node.op->batch_parts();
    return int64_t{0};
  };
  JobConfig config = of_small_unet();
  config.micro_batches = 2;
  EXPECT_EQ(parts(config), 1);
  config.norm = "micro-batch";
  EXPECT_EQ(parts(config), 2);
}

TEST(ResolveJob, ThePlanIsWhole) {
  JobConfig config = of_small_unet();
  config.model += ",norm=none";
  config.stages = 3;
  config.micro_batches = 2;
  config.pipeline_schedule = "gpipe";
  config.pipeline_costs = "flops";
  const Job job = resolve_job(config);
  EXPECT_EQ(job.plan.num_ranks(), 3);
  EXPECT_EQ(job.plan.micro_batches, 2);
  EXPECT_EQ(job.plan.schedule, ScheduleKind::kGpipe);
  EXPECT_EQ(job.plan.schedule_costs, ScheduleCosts::kFlops);
  EXPECT_EQ(job.plan.stage_of.size(), job.graph().nodes().size());
}

TEST(ResolveJob, LayersAreSlicesByMultigrid) {
  JobConfig config;
  config.model = "resnet_chain2d:blocks=8,width=2";
  config.layers = 2;
  config.space = "1x2";
  config.multigrid = "coarsening=2,forward=3";
  const Job job = resolve_job(config);
  EXPECT_EQ(job.plan.num_ranks(), 4);
  EXPECT_EQ(job.plan.multigrid->forward, 3);
  EXPECT_EQ(job.plan.stage_of.at("step4.conv"), 0);
  EXPECT_EQ(job.plan.stage_of.at("step5.conv"), 1);
  config.multigrid = "";
  expect_refusal([&] { resolve_job(config); }, "say --multigrid");
  config.multigrid = "relax=CF";
  expect_refusal([&] { resolve_job(config); }, "use F, FCF");
}

TEST(ResolveJob, SeedAndLaunchAreTaken) {
  JobConfig config = of_small_unet();
  config.seed = 9;
  config.launch = "mpi";
  config.threads = 3;
  config.timeout_seconds = 2.5;
  const Job job = resolve_job(config);
  EXPECT_EQ(job.seed, 9u);
  EXPECT_EQ(job.launch.launch, "mpi");
  EXPECT_EQ(job.launch.threads, 3);
  EXPECT_EQ(job.launch.timeout_seconds, 2.5);
}

TEST(ResolveJob, RefusesValuesThatNoOptionWouldLetPass) {
  const auto refused = [](const auto& change, const std::string& part) {
    JobConfig config = of_small_unet();
    change(config);
    expect_refusal([&] { resolve_job(config); }, part);
  };
  refused([](JobConfig& c) { c.replicas = 0; }, "[--replicas] 0 must be in [1, 65536]");
  refused([](JobConfig& c) { c.stages = 0; }, "[--stages] 0 must be in [1, 4096]");
  refused([](JobConfig& c) { c.workers = -1; }, "[--workers] -1 must be in [0, 65536]");
  refused([](JobConfig& c) { c.micro_batches = 0; }, "[--micro-batches] 0 must be in [1, 1048576]");
  refused([](JobConfig& c) { c.chunks = 0; }, "[--chunks] 0 must be in [1, 1024]");
  refused([](JobConfig& c) { c.threads = 0; }, "[--threads] 0 must be in [1, 256]");
  refused([](JobConfig& c) { c.timeout_seconds = 0; }, "[--timeout] 0 must be above 0");
  refused([](JobConfig& c) { c.timeout_seconds = NAN; }, "[--timeout] nan must be above 0");
  refused([](JobConfig& c) { c.space = "2x0"; }, "[--space] \"2x0\" is not a list of sizes");
  refused([](JobConfig& c) { c.pieces = "2,2"; }, "[--pieces] \"2,2\" is not a list of sizes");
  refused([](JobConfig& c) { c.pipeline_schedule = "x"; },
          "[--pipeline-schedule] \"x\" is not known; use one of sequential, gpipe, 1f1b");
  refused([](JobConfig& c) { c.norm = "x"; }, "use one of batch, micro-batch");
  refused([](JobConfig& c) { c.launch = "x"; }, "use one of threads, mpi");
  refused([](JobConfig& c) { c.dtype = "float16"; }, "use one of float32, float64");
}

TEST(ResolveJob, RefusesAPlacementThatDoesNotFitTheInput) {
  JobConfig config = of_small_unet();
  config.replicas = 5;
  expect_refusal([&] { resolve_job(config); }, "data 5 is more than the batch of 4");
  config.replicas = 1;
  config.space = "2x2x2";
  expect_refusal([&] { resolve_job(config); }, "space 2x2x2 has 3 axes");
}

TEST(MakeJob, IsTheGraphOnOneRank) {
  const Job job = make_job(small_network(2));
  EXPECT_EQ(job.graph().nodes().size(), small_network(2).nodes().size());
  EXPECT_EQ(job.plan, Plan());
  EXPECT_EQ(job.plan.num_ranks(), 1);
  EXPECT_EQ(job.memory_limit, std::nullopt);
  EXPECT_EQ(number_name(job.real), "float32");
}

}  // namespace
}  // namespace tessera::job_test
