#pragma once
// The training loop of one rank. All ranks run it side by side and take the same decisions, because
// they decide on numbers that are the same on all of them: the summed loss, the summed gradients,
// the summed wish to stop. A rank holds the parameters of its own stage; rank 0 collects those of
// the others where a file wants them all.
//
// Example:
//   TrainingJob job = prepare_training(config, graph, plan, at::kFloat);
//   threads::run_ranks(job.plan.num_ranks(), [&](Transport& t) {
//     Trainer(job, &t, "threads").run();
//   });

#include <atomic>
#include <chrono>
#include <map>
#include <optional>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/optim/learning_rate.h"
#include "tessera/optim/optimiser.h"
#include "tessera/optim/plateau.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/early_stopping.h"
#include "tessera/train/metrics_file.h"
#include "tessera/train/progress.h"
#include "tessera/train/run_folder.h"
#include "tessera/train/run_results.h"
#include "tessera/train/serial_check.h"
#include "tessera/train/training_job.h"
#include "tessera/train/validator.h"

namespace tessera {

/// Set by a signal handler (Ctrl-C): every rank writes its last checkpoint and ends.
extern std::atomic<bool> stop_requested;
/// Set when a job's plan is made and its ranks start: before that there is no step to finish.
extern std::atomic<bool> training_begun;

enum class TrainEnd { kFinished, kEarlyStopped, kInterrupted };

/// The results are the run's, also where this start had nothing left to do.
struct TrainOutcome : RunResults {
  TrainEnd end = TrainEnd::kFinished;
  int64_t steps = 0;  // done, in all starts of the run together
  std::optional<int64_t> resumed_at;
  std::vector<double> losses;  // of the steps of this start
  std::string folder;          // of the run
  std::string checkpoint;      // path of the last one

  int64_t steps_run() const { return steps - resumed_at.value_or(0); }
};

class Trainer {
 public:
  /// All outlive it. The device is the calling thread's, of the kind that the job is lowered for.
  Trainer(const TrainingJob& job, Transport* transport, const std::string& transport_name,
          Device& device = host_device());

  /// Collective over all ranks. Throws InvalidInput for a loss that is not a number (unless on_nan
  /// is skip), checkpoints that do not fit, disks that are full.
  TrainOutcome run();

  const ParameterStore& parameters() const { return parameters_; }

 private:
  bool is_first() const { return transport_->rank() == 0; }
  const Program& program() const { return micro_steps_[0]->program(); }
  const BatchPlan& batches() const { return loader_.plan(); }
  /// Batches are numbered through the whole run.
  int64_t batch_of(int64_t micro) const { return step_ * job_.config.accumulation + micro; }
  bool is_partial(int64_t batch) const { return batches().size_of(batch) < batches().batch_size(); }
  const Lowering& lowering_of(int64_t batch) const;
  Executor& executor_of(int64_t batch) const;
  /// Of the next step.
  double learning_rate() const;
  /// Of the validations of this data.
  std::vector<ScoreName> scores_shown() const;
  std::vector<std::string> metrics_columns() const;
  /// That the run has taken, in all its starts together.
  double seconds() const;
  /// The ranks that hold each parameter.
  const std::vector<Members>& holders() const { return job_.micro_steps[0]->holders(); }

  // trainer_state.cpp: how a run begins, is saved and ends
  void start_or_resume();
  std::vector<std::string> load_initial_weights();
  std::string claim_folder();
  std::string config_text() const;
  void open_records(const std::string& resumed_from);
  void restore(const std::string& checkpoint);
  TrainingState snapshot();
  void save_checkpoint(bool is_best);
  void finish_run();
  void save_best_weights(const std::string& path);
  void write_weights(const std::string& path, const std::vector<at::Tensor>& values,
                     int64_t steps) const;

  // trainer.cpp: the loop
  using Executors = std::vector<std::shared_ptr<Executor>>;  // batches of one kind share theirs
  Executors executors_for(const std::vector<std::shared_ptr<const Lowering>>& lowerings);
  void use_cycles(const Multigrid& multigrid);
  void add_cycles_where_needed();
  double train_step();
  void run_micro_step(int64_t batch);
  void start_prefetching();
  void dump_gradients();
  void handle_bad_step(double loss);
  std::string bad_sample();
  std::string bad_sample_of(int domain, int64_t batch);
  void validate();
  double monitored() const;
  bool anyone_wants_to_stop();
  void log_step(double loss);

  // trainer_ranks.cpp: where the ranks meet outside of a step
  std::vector<at::Tensor> whole(const std::vector<at::Tensor>& own,
                                const std::vector<ParameterId>& ids);
  std::vector<at::Tensor> whole_parameters();
  std::vector<at::Tensor> whole_gradients();
  NamedTensors whole_optimiser_state();
  double sum_over_ranks(double number);

  const TrainingJob& job_;
  Transport* transport_;
  std::string transport_name_;
  Members everyone_;
  ParameterStore parameters_;
  std::unique_ptr<Optimiser> optimiser_;
  LearningRate learning_rate_;
  EarlyStopping early_stopping_;
  std::optional<Plateau> plateau_;
  StepLowerings steps_;
  Executors micro_steps_;
  Executors partial_micro_steps_;
  std::optional<Multigrid> multigrid_;  // as the plan says, or with more V-cycles
  std::unique_ptr<Validator> validator_;
  std::map<std::string, Validator> target_validators_;  // by their names
  std::unique_ptr<SerialCheck> serial_check_;           // where --check-serial asks for it
  std::optional<double> residual_;                      // of the last step, where it was solved
  std::optional<double> gradient_residual_;             // ... and where that is measured
  std::optional<SerialDifference> serial_difference_;   // of the last step, where it was checked
  BatchLoader loader_;
  std::vector<std::unique_ptr<Prefetch>> prefetch_;  // of each domain
  std::optional<CheckpointStore> checkpoints_;       // once the run folder is known
  std::optional<RunFolder> folder_;                  // rank 0
  std::optional<MetricsFile> metrics_;               // rank 0
  std::optional<Progress> progress_;
  std::vector<at::Tensor>
      good_buffers_;  // running statistics before the step, where on_nan is skip
  int64_t step_ = 0;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  double seconds_before_ = 0;  // of earlier starts, until the checkpoint that this one goes on from
  double gradient_norm_ = 0;
  double last_learning_rate_ = 0;  // of the last step
  bool improved_ = false;
  std::string complaint_;  // of metrics.csv, until all ranks hear of it
  TrainOutcome outcome_;
};

}  // namespace tessera
