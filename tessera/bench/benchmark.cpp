#include "tessera/bench/benchmark.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tessera/base/error.h"
#include "tessera/bench/gather_trace.h"
#include "tessera/comm/borrowed.h"
#include "tessera/data/noise.h"
#include "tessera/graph/number_type.h"
#include "tessera/lower/multigrid.h"
#include "tessera/optim/optimiser.h"
#include "tessera/report/task_events.h"
#include "tessera/runtime/affinity.h"
#include "tessera/runtime/rank_session.h"

namespace tessera {
namespace {

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

double percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const size_t low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (position - static_cast<double>(low)) * (values[high] - values[low]);
}

/// Draws every box once, and has it where it is wanted: drawing noise takes longer than a small
/// network's step.
class NoiseCache {
 public:
  NoiseCache(const Graph& graph, uint64_t seed, at::ScalarType real, const at::Device& place)
      : graph_(graph), seed_(seed), real_(real), place_(place) {}

  const at::Tensor& find(ValueId input, const Box& box) {
    at::Tensor& drawn = drawn_[to_string(box) + graph_.value(input).name];
    if (!drawn.defined()) {
      const bool is_index = graph_.type(input).element == Element::kIndex;
      drawn = at::empty(box.shape(), is_index ? at::kLong : real_);
      load_noise(graph_, input, seed_, 0, box, drawn);
      drawn = drawn.to(place_);
    }
    return drawn;
  }

 private:
  const Graph& graph_;
  uint64_t seed_;
  at::ScalarType real_;
  at::Device place_;
  std::map<std::string, at::Tensor> drawn_;
};

/// One block of every rank, in rank order, on every rank.
template <class T>
std::vector<T> gather_blocks(RankSession& session, const std::vector<T>& own) {
  const size_t ranks = session.everyone().size();
  const int64_t bytes = static_cast<int64_t>(own.size() * sizeof(T));
  std::vector<T> all(own.size() * ranks);
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<std::ptrdiff_t>(own.size()) * session.transport().rank());
  AllGather gather(session.transport(), session.everyone(), std::vector<int64_t>(ranks, bytes),
                   all.data());
  gather.finish();
  return all;
}

/// A line of each rank; long ones are cut.
std::vector<std::string> gather_lines(RankSession& session, const std::string& own) {
  using Line = std::array<char, 120>;
  Line line{};
  std::copy_n(own.begin(), std::min(own.size(), line.size() - 1), line.begin());
  std::vector<std::string> lines;
  for (const Line& of_rank : gather_blocks(session, std::vector<Line>{line}))
    lines.emplace_back(of_rank.data());
  return lines;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// `session`, `optimiser` and `noise` outlive it.
StepContext step_context(RankSession& session, const BenchOptions& options, Optimiser& optimiser,
                         NoiseCache& noise) {
  StepContext context;
  context.seed = options.seed;
  context.find = [&](ValueId input, const Box& box) { return noise.find(input, box); };
  context.update = [&] {
    optimiser.step(session.parameters().values(), session.parameters().gradients());
  };
  return context;
}

/// What the timed steps of this rank took, and what they sent and waited for.
struct TimedSteps {
  std::vector<double> milliseconds;
  TransportCounters traffic;
  DelayCounters delayed;
};

/// Counts what happens from its making to its end.
class Traffic {
 public:
  Traffic(const RankSession& session, const DelayCounters& delayed)
      : session_(session),
        delayed_(delayed),
        traffic_before_(session.counters()),
        delayed_before_(delayed) {}

  void add_to(TimedSteps* steps) const {
    const TransportCounters& now = session_.counters();
    steps->traffic.messages += now.messages - traffic_before_.messages;
    steps->traffic.bytes_sent += now.bytes_sent - traffic_before_.bytes_sent;
    steps->traffic.blocked_seconds += now.blocked_seconds - traffic_before_.blocked_seconds;
    steps->delayed.transfer_seconds += delayed_.transfer_seconds - delayed_before_.transfer_seconds;
    steps->delayed.exposed_seconds += delayed_.exposed_seconds - delayed_before_.exposed_seconds;
  }

 private:
  const RankSession& session_;
  const DelayCounters& delayed_;
  const TransportCounters traffic_before_;
  const DelayCounters delayed_before_;
};

TimedSteps time_steps(RankSession& session, StepContext context, const BenchOptions& options,
                      const DelayCounters& delayed) {
  TimedSteps steps;
  for (int64_t i = 0; i < options.warmup + options.iterations; ++i) {
    barrier(session.transport(), session.everyone());
    const Traffic traffic(session, delayed);
    const double start = now_ms();
    context.step = i;
    session.executor().run(context);
    if (i < options.warmup) continue;
    steps.milliseconds.push_back(now_ms() - start);
    traffic.add_to(&steps);
  }
  return steps;
}

RankMeasurement measurement_of(RankSession& session, const TimedSteps& steps) {
  const int64_t count = std::ssize(steps.milliseconds);
  const auto mean_ms = [&](double seconds) { return 1000 * seconds / static_cast<double>(count); };
  const MemoryCounters& memory = session.executor().memory();
  RankMeasurement measured;
  measured.peak_value_bytes = memory.peak_value_bytes;
  measured.arena_bytes = memory.arena_bytes;
  measured.workspace_bytes = memory.peak_workspace_bytes;
  measured.reduction_bytes = memory.reduction_bytes;
  measured.scratch_bytes = memory.scratch_bytes;
  measured.parameter_bytes = session.parameters().bytes();
  measured.bytes_sent = steps.traffic.bytes_sent / count;
  measured.messages = steps.traffic.messages / count;
  measured.blocked_ms = mean_ms(steps.traffic.blocked_seconds);
  measured.transfer_ms = mean_ms(steps.delayed.transfer_seconds);
  measured.exposed_ms = mean_ms(steps.delayed.exposed_seconds);
  measured.peak_rss_bytes = peak_rss_bytes();
  measured.device_bytes = session.device().peak_bytes();
  return measured;
}

/// One more step; all ranks' clocks start together, as far as messages can tell.
std::vector<TraceEvent> trace_step(RankSession& session, const Graph& graph, StepContext context,
                                   TraceRecorder::Detail detail) {
  TraceRecorder recorder(graph, session.transport().rank(), detail);
  context.trace = &recorder;
  barrier(session.transport(), session.everyone());
  recorder.start();
  session.executor().run(context);
  recorder.finish();
  return gather_trace(session.transport(), session.everyone(), recorder.events());
}

}  // namespace

std::optional<double> BenchReport::hidden_share() const {
  double transfer = 0, exposed = 0;
  for (const RankMeasurement& rank : per_rank) {
    transfer += rank.transfer_ms;
    exposed += rank.exposed_ms;
  }
  if (transfer == 0) return std::nullopt;
  return 1 - exposed / transfer;
}

LowerOptions timed_step(const BenchOptions& options) {
  LowerOptions lowering;
  lowering.step = options.update ? StepKind::kTrain : StepKind::kGradient;
  const std::unique_ptr<Optimiser> optimiser = sgd({});
  if (options.update) lowering.optimiser = {optimiser->state_copies(), optimiser->counts_steps()};
  lowering.real = options.real;
  lowering.device = options.device.type;
  return lowering;
}

BenchReport benchmark(const Lowering& lowering, const BenchOptions& options, Transport& transport) {
  if (options.iterations < 1 || options.warmup < 0)
    throw_error<InvalidInput>("[benchmark] {} steps after {}; use at least 1 after at least 0",
                              options.iterations, options.warmup);
  DelayCounters delayed;
  std::unique_ptr<Transport> slow;
  if (options.delay)
    slow = delaying(std::make_unique<BorrowedTransport>(transport), *options.delay, &delayed);
  RankSession session(lowering, slow ? *slow : transport,
                      {options.real, options.seed, options.threads, options.device});
  const std::unique_ptr<Optimiser> optimiser = sgd({});
  optimiser->keep_state_in(session.parameters().states());
  NoiseCache noise(lowering.graph(), options.seed, wide(options.real), session.device().place());
  const StepContext context = step_context(session, options, *optimiser, noise);
  const TimedSteps steps = time_steps(session, context, options, delayed);
  const std::vector<double>& own = steps.milliseconds;

  BenchReport report;
  report.ranks = lowering.num_ranks();
  report.loss = session.executor().loss();
  report.residual = solve_residual(session.executor().measured());
  report.gradient_residual = solve_gradient_residual(session.executor().measured());
  report.per_rank =
      gather_blocks(session, std::vector<RankMeasurement>{measurement_of(session, steps)});
  report.cpus = gather_lines(session, to_text(thread_affinity()));
  report.devices = gather_lines(session, name_of(session.device().place()));
  const std::vector<double> all = gather_blocks(session, own);
  std::vector<double> slowest(own.size(), 0);
  for (size_t i = 0; i < all.size(); ++i)
    slowest[i % own.size()] = std::max(slowest[i % own.size()], all[i]);
  report.median_ms = percentile(slowest, 0.5);
  report.p10_ms = percentile(slowest, 0.1);
  report.p90_ms = percentile(slowest, 0.9);
  if (options.trace) {
    report.trace = trace_step(session, lowering.graph(), context, *options.trace);
    report.rank_names = rank_names(lowering.plan());
  }
  return report;
}

BenchReport benchmark(const Graph& graph, const BenchOptions& options) {
  const Lowering lowering(graph, options.plan, timed_step(options));
  lowering.prove();
  return report_from_threads<BenchReport>(
      options.plan.num_ranks(), options.threads, options.timeout_seconds,
      [&](Transport& transport) { return benchmark(lowering, options, transport); });
}

}  // namespace tessera
