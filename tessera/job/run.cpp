#include "tessera/job/run.h"

#include <set>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/graph/number_type.h"
#include "tessera/import/import.h"
#include "tessera/job/choose_device.h"
#include "tessera/job/class_weights.h"
#include "tessera/job/forecast.h"
#include "tessera/job/freeze.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/lower/inference.h"

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
  options->device = job.device;
  options->seed = job.seed;
  options->threads = job.launch.threads;
  options->timeout_seconds = job.launch.timeout_seconds;
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
                  "--data folder:PATH,ignore={}",
                  term.name, options.ignore_index, options.ignore_index);
        },
        term.options);
}

/// A norm by running statistics is what PyTorch trains, too, after model.eval(). It is rarely
/// meant.
void warn_of_eval_mode(const Job& job) {
  const std::vector<std::string> norms = norms_in_eval_mode(job.graph());
  if (norms.empty()) return;
  print_error(
      "warning: [train] {} was saved in eval mode: {} by running statistics ({}{}), which training "
      "leaves as they are; to train the norms, too, call model.train() before torch.jit.script or "
      "torch.jit.trace\n",
      job.model.name,
      norms.size() == 1 ? "1 norm normalises" : fmt::format("{} norms normalise", norms.size()),
      norms.front(), norms.size() == 1 ? "" : ", ...");
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
    VerifyOptions own = options;
    own.device = agreed_device(job, transport);
    return verify(job.graph(), lowering, own, transport);
  });
}

BenchReport benchmark(const Job& job, BenchOptions options) {
  take_from(job, &options);
  const Lowering lowering(job.graph(), job.plan, timed_step(options));
  forecast_within_limits(job, lowering, where_ranks_live(job));
  return report_from_ranks<BenchReport>(job, [&](Transport& transport) {
    BenchOptions own = options;
    own.device = agreed_device(job, transport);
    return benchmark(lowering, own, transport);
  });
}

Job resolve_training(const TrainConfig& config) {
  check_ignored_label(config.loss);
  Job job = resolve_job(config);
  if (!config.freeze.empty()) job.model.graph = freeze(job.graph(), config.freeze);
  check_weights_path(weights_target(config.save_weights).path, job.model);
  return job;
}

TrainOutcome train(const Job& job, const TrainConfig& config, std::shared_ptr<const Dataset> data) {
  TrainConfig of_job = config;
  of_job.seed = job.seed;
  of_job.dtype = number_name(job.real);
  // As they are, however they were given: two starts of a run are compared by them.
  const Shape input = job.graph().type(job.graph().inputs()[0]).shape();
  of_job.input = to_string(input);
  of_job.batch = input[0];
  of_job.micro_batches = job.plan.micro_batches;
  if (!data) data = open_training_data(of_job, job.graph());
  const std::vector<double> weights = counted_class_weights(job, of_job, data);
  const Graph graph =
      weights.empty() ? job.graph() : with_class_weights(job.graph(), of_job, weights);
  TrainingJob training = prepare_training(of_job, graph, job.plan, job.numbers(), std::move(data));
  training.class_weights = weights;
  training.ties = job.model.ties;
  training.write_weights = [&](const std::string& path, const std::vector<at::Tensor>& values,
                               int64_t steps) {
    save_model_weights(path, job.model, values, steps);
  };
  const Where where = where_ranks_live(job);
  const Forecast step = forecast_within_limits(job, *training.micro_steps.back(), where);
  // Steps of the other kinds, and validation, beside what the last step keeps.
  std::set<std::shared_ptr<const Lowering>> others(training.micro_steps.begin(),
                                                   training.micro_steps.end());
  others.insert(training.partial_micro_steps.begin(), training.partial_micro_steps.end());
  others.erase(training.micro_steps.back());
  if (training.validation) others.insert(training.validation);
  if (training.validation_set.partial) others.insert(training.validation_set.partial);
  for (const TargetDomain& target : training.targets)
    if (target.validation.partial) others.insert(target.validation.partial);
  for (const auto& other : others) forecast_within_limits(job, *other, where, &step);
  training_begun.store(true);
  return report_from_ranks<TrainOutcome>(job, [&](Transport& transport) {
    if (transport.rank() == 0) warn_of_eval_mode(job);
    const std::unique_ptr<Device> device = open_rank_device(job, transport);
    return Trainer(training, &transport, transport_name(job.launch), *device).run();
  });
}

}  // namespace tessera
