#include "tessera/job/run.h"

#include <set>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/import/import.h"
#include "tessera/job/forecast.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

/// What `body` returns on rank 0; an empty report on processes of other ranks.
template <class Report, class Body>
Report report_from_ranks(const Job& job, const Body& body) {
  Report report;
  run_on_ranks(job.plan.num_ranks(), job.launch, [&](Transport& transport) {
    Report own = body(transport);
    if (transport.rank() == 0) report = std::move(own);
  });
  return report;
}

/// What the options of a proof and of a measurement have in common.
template <class Options>
void take_from(const Job& job, Options* options) {
  options->plan = job.plan;
  options->real = job.real;
  options->seed = job.seed;
  options->threads = job.launch.threads;
  options->timeout_seconds = job.launch.timeout_seconds;
}

/// The input with the batch that --batch gives.
std::string input_of(const TrainConfig& config) {
  if (config.batch == 0 || (config.input.empty() && names_a_file(config.model)))
    return config.input;
  std::vector<int64_t> sizes = config.input.empty() ? find_model(config.model).default_input
                                                    : parse_sizes(config.input, "--input");
  sizes[0] = config.batch;
  return to_string(sizes);
}

/// Data sets write one label for pixels that do not count, and so does the filling of the last
/// validation batch.
void check_ignored_label(const std::string& loss) {
  if (loss.empty()) return;
  for (const LossTerm& term : parse_loss(loss).terms)
    std::visit(
        [&](const auto& options) {
          if constexpr (requires { options.ignore_index; })
            if (options.ignore_index != kIgnoreLabel)
              throw_error<InvalidInput>(
                  "[--loss] {} ignores the label {}; in training the data says what to ignore: "
                  "--data npy:images.npy,targets.npy,ignore={}",
                  term.name, options.ignore_index, options.ignore_index);
        },
        term.options);
}

}  // namespace

VerifyReport verify(const Job& job, VerifyOptions options) {
  take_from(job, &options);
  const Lowering lowering(job.graph(), job.plan, verified_step(options));
  const Where where = where_ranks_live(job);
  const Forecast placement = forecast_within_limits(job, lowering, where);
  const OracleBytes oracle = oracle_bytes(job.graph(), options);
  const bool all_here = where == Where::kThisMachine;
  check_oracle_fits(job, placement, oracle, all_here ? everyone(lowering.num_ranks()) : Members{});
  return report_from_ranks<VerifyReport>(job, [&](Transport& transport) {
    if (!all_here && transport.rank() == 0) check_oracle_fits(job, placement, oracle, {0});
    return verify(job.graph(), lowering, options, transport);
  });
}

BenchReport benchmark(const Job& job, BenchOptions options) {
  take_from(job, &options);
  const Lowering lowering(job.graph(), job.plan, timed_step(options));
  forecast_within_limits(job, lowering, where_ranks_live(job));
  return report_from_ranks<BenchReport>(
      job, [&](Transport& transport) { return benchmark(lowering, options, transport); });
}

Job resolve_training(const TrainConfig& config) {
  check_ignored_label(config.loss);
  JobConfig with_batch = config;
  with_batch.input = input_of(config);
  Job job = resolve_job(with_batch);
  check_weights_path(config.save_weights, job.model);
  return job;
}

TrainOutcome train(const Job& job, const TrainConfig& config, std::shared_ptr<const Dataset> data) {
  TrainConfig of_job = config;
  of_job.seed = job.seed;
  of_job.dtype = dtype_name(job.real);
  TrainingJob training = prepare_training(of_job, job.graph(), job.plan, job.real, std::move(data));
  training.ties = job.model.ties;
  training.write_weights = [&](const std::vector<at::Tensor>& values, int64_t steps) {
    save_model_weights(config.save_weights, job.model, values, steps);
  };
  const Where where = where_ranks_live(job);
  const Forecast step = forecast_within_limits(job, *training.micro_steps.back(), where);
  // Steps of the other kinds, and validation, beside what the last step keeps.
  std::set<std::shared_ptr<const Lowering>> others(training.micro_steps.begin(),
                                                   training.micro_steps.end());
  others.erase(training.micro_steps.back());
  if (training.validation) others.insert(training.validation);
  for (const auto& other : others) forecast_within_limits(job, *other, where, &step);
  training_begun.store(true);
  return report_from_ranks<TrainOutcome>(job, [&](Transport& transport) {
    return Trainer(training, &transport, transport_name(job.launch)).run();
  });
}

}  // namespace tessera
