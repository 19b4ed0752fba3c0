#pragma once
// Everything that can be done with a job, one call each. The ranks live where job.launch says; a
// call returns when all of them are done. Where ranks are processes every process makes the same
// call, and the result is complete on rank 0's (is_secondary_process() is false there).
//
// All of them throw OutOfMemory before anything is allocated where the job does not fit.
//
// Example:
//   TrainConfig config;
//   config.model = "unet2d:base=8,classes=3";
//   config.input = "4x1x96x96";
//   config.space = "2x2";
//   config.data = "synthetic:samples=64,classes=3";
//   config = resolved(config);
//   const Job job = resolve_training(config);
//   if (!verify(job).ok) return 1;
//   const TrainOutcome outcome = train(job, config);

#include <memory>

#include "tessera/bench/benchmark.h"
#include "tessera/config/train_config.h"
#include "tessera/data/dataset.h"
#include "tessera/job/job.h"
#include "tessera/proof/verify.h"
#include "tessera/train/trainer.h"

namespace tessera {

/// The same steps on the job's plan and on the one-rank oracle (proof/verify.h). Plan, seed and
/// what else the job says is taken from it.
VerifyReport verify(const Job& job, VerifyOptions options = {});

/// Times the job's steps (bench/benchmark.h). Plan, seed and what else the job says is taken from
/// it.
BenchReport benchmark(const Job& job, BenchOptions options = {});

/// The job of a training run: as resolve_job(), with what training asks for on top checked.
Job resolve_training(const TrainConfig& config);

/// Trains until the steps are done, the run stops early, or stop_requested is set. Checkpoints and
/// metrics go to config.folder (empty: a new folder below runs/), and a run that is there is
/// resumed: with the settings that it has, or it is refused. `config` comes from resolved();
/// its keys about model, placement, seed and element type are replaced by the job's. `data`
/// replaces the data set that config.data names.
TrainOutcome train(const Job& job, const TrainConfig& config,
                   std::shared_ptr<const Dataset> data = nullptr);

}  // namespace tessera
