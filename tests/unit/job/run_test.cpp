#include "tessera/job/run.h"

#include <gtest/gtest.h>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/job/forecast.h"
#include "tessera/job/predict.h"
#include "tessera/lower/inference.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/job/small_job.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::run_test {
namespace {

TrainConfig training_in(const std::string& folder, int64_t epochs) {
  TrainConfig config;
  config.model = "signs";
  config.dtype = "float64";
  config.validation_fraction = 0.25;
  config.learning_rate = 0.5;
  config.epochs = epochs;
  config.folder = folder;
  return resolved(config);
}

TEST(RunJob, AGridIsVerifiedWithWhatTheJobSays) {
  Job job = small_job(2);
  job.seed = 5;
  VerifyOptions options;
  options.plan.space = {1, 1};  // the job's count
  options.real = at::kFloat;
  options.steps = 3;
  options.keep_parameters = true;
  const VerifyReport report = verify(job, options);
  EXPECT_TRUE(report.ok) << report.worst;
  EXPECT_EQ(report.ranks, 4);
  EXPECT_EQ(report.losses.size(), 3u);
  EXPECT_EQ(report.parameters[0].scalar_type(), at::kDouble);
  job.seed = 6;
  EXPECT_NE(verify(job, options).losses[0], report.losses[0]);
}

TEST(RunJob, ABenchmarkCountsWhatThePlanPredicts) {
  const Job job = small_job(2);
  BenchOptions options;
  options.warmup = 1;
  options.iterations = 3;
  options.update = true;
  options.real = job.real;
  const auto forecasts =
      forecast_within_limits(job, Lowering(job.graph(), job.plan, timed_step(options)),
                             Where::kAnywhere)
          .ranks;
  const BenchReport report = benchmark(job, options);
  EXPECT_EQ(report.ranks, 4);
  EXPECT_GT(report.p10_ms, 0);
  ASSERT_EQ(report.per_rank.size(), forecasts.size());
  for (size_t rank = 0; rank < forecasts.size(); ++rank) {
    EXPECT_EQ(report.per_rank[rank].peak_value_bytes, forecasts[rank].peak_value_bytes);
    EXPECT_EQ(report.per_rank[rank].arena_bytes, forecasts[rank].arena_bytes);
    EXPECT_EQ(report.per_rank[rank].parameter_bytes, forecasts[rank].parameter_bytes);
    EXPECT_EQ(report.per_rank[rank].bytes_sent, forecasts[rank].bytes_sent);
    EXPECT_GT(report.per_rank[rank].bytes_sent, 0);
  }
}

// A checkpoint with right checksums and a wrong number, which once was an internal error.
TEST(RunJob, AnEditedCheckpointIsRefusedByItsName) {
  const ScratchFolder folder;
  const Job job = small_job(2);
  const auto data = std::make_shared<const SignsOfWaves>(8);
  train(job, training_in(folder / "run", 1), data);
  for (const char* text : {"many", "", "-1", "99999999999999999999"}) {
    SCOPED_TRACE(text);
    std::string path;
    {
      CheckpointStore store(folder / "run/checkpoints", 3);
      TrainingState state = store.load(store.latest_valid().value());
      state.metadata["validations_without_best"] = text;
      path = store.save(state, false);
    }
    try {
      train(job, training_in(folder / "run", 2), data);
      ADD_FAILURE() << "it was taken";
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error& error) {
      EXPECT_TRUE(has(error.what(), path) && has(error.what(), "validations_without_best"))
          << error.what();
    }
  }
}

TEST(RunJob, NothingRunsThatDoesNotFit) {
  const ScratchFolder folder;
  Job job = small_job(2);
  job.memory_limit = 100;
  const auto data = std::make_shared<const SignsOfWaves>(8);
  EXPECT_THROW(verify(job), OutOfMemory);
  EXPECT_THROW(benchmark(job), OutOfMemory);
  TrainConfig config = training_in(folder / "run", 1);
  EXPECT_THROW(train(job, config, data), OutOfMemory);
  config.validation_fraction = 0;  // the step itself does not fit, either
  EXPECT_THROW(train(job, config, data), OutOfMemory);
  PredictRequest request;
  request.weights = "none.safetensors";
  request.raw = folder / "raw.npy";
  EXPECT_THROW(predict(job, *data, request), OutOfMemory);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(TrainJob, LearnsFromADataSetOfOnesOwn) {
  const ScratchFolder folder;
  const auto data = std::make_shared<const SignsOfWaves>(16);
  const TrainOutcome outcome = train(small_job(4), training_in(folder / "run", 10), data);
  EXPECT_EQ(outcome.end, TrainEnd::kFinished);
  EXPECT_EQ(outcome.steps, 30);  // 12 of the 16 are trained on, in batches of 4
  EXPECT_EQ(outcome.resumed_at, std::nullopt);
  ASSERT_TRUE(outcome.validation);
  EXPECT_LT(outcome.validation->loss, 0.4);  // guessing gives log 2, that is 0.69
  EXPECT_EQ(names_in(folder / "run"),
            (std::vector<std::string>{"checkpoints", "metrics.csv", "run.json"}));
  EXPECT_EQ(names_in(outcome.checkpoint),
            (std::vector<std::string>{"state.json", "tensors.safetensors"}));
}

TEST(TrainJob, TheSecondCallResumesTheFirst) {
  const ScratchFolder folder;
  const Job job = small_job(4);
  const auto data = std::make_shared<const SignsOfWaves>(16);
  const TrainOutcome whole = train(job, training_in(folder / "whole", 2), data);
  EXPECT_EQ(train(job, training_in(folder / "cut", 1), data).steps, 3);
  const TrainOutcome resumed = train(job, training_in(folder / "cut", 2), data);
  EXPECT_EQ(resumed.resumed_at, 3);
  EXPECT_EQ(resumed.steps, 6);
  EXPECT_EQ(resumed.loss, whole.loss);
}

/// It is what PyTorch would do, and rarely what is meant.
TEST(TrainJob, ANetworkInEvalModeIsTrainedWithAWarning) {
  const ScratchFolder folder;
  const Graph graph =
      build_model("unet2d:base=2,depth=2,classes=2", {4, 1, kImageRows, kImageColumns});
  const auto data = std::make_shared<const SignsOfWaves>(16);
  const auto words = [&](const Graph& trained, const char* name) {
    Job job = make_job(trained);
    job.real = at::kDouble;
    testing::internal::CaptureStderr();
    train(job, training_in(folder / name, 1), data);
    return testing::internal::GetCapturedStderr();
  };
  const std::string warned = words(for_inference(graph), "frozen");
  EXPECT_TRUE(has(warned, "was saved in eval mode: ") && has(warned, "call model.train()"))
      << warned;
  EXPECT_FALSE(has(words(graph, "trained"), "warning")) << "its norms are trained";
}

TEST(ResolveTraining, TheBatchReplacesThatOfTheInput) {
  TrainConfig config;
  config.model = "unet2d:base=2,depth=2";
  config.input = "2x3x16x24";
  const auto image = [&] {
    const Job job = resolve_training(config);
    return job.graph().type(job.graph().inputs()[0]).shape();
  };
  EXPECT_EQ(image(), (Shape{2, 3, 16, 24}));
  config.batch = 6;
  EXPECT_EQ(image(), (Shape{6, 3, 16, 24}));
}

TEST(ResolveTraining, RefusesWhatOnlyShowsAtTheEndOfARun) {
  TrainConfig config;
  config.model = "unet2d:base=2,depth=2,classes=3";
  config.input = "2x3x16x16";
  config.loss = "cross_entropy:ignore_index=255";
  expect_refusal([&] { resolve_training(config); }, "ignores the label 255");
}

}  // namespace
}  // namespace tessera::run_test
