#include "tessera/trial/benchmark.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "tessera/data/noise.h"
#include "tessera/train/optimiser.h"
#include "tessera/trial/local_ranks.h"

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

/// Draws every box once and then copies: drawing noise takes longer than a small network's step.
class NoiseCache {
 public:
  NoiseCache(const Graph& graph, uint64_t seed) : graph_(graph), seed_(seed) {}

  void load(ValueId input, const Box& box, at::Tensor target) {
    at::Tensor& drawn = drawn_[to_string(box) + graph_.value(input).name];
    if (!drawn.defined()) {
      drawn = at::empty(box.shape(), target.options());
      load_noise(graph_, input, seed_, 0, box, drawn);
    }
    target.copy_(drawn);
  }

 private:
  const Graph& graph_;
  uint64_t seed_;
  std::map<std::string, at::Tensor> drawn_;
};

}  // namespace

BenchReport benchmark(const Graph& graph, const BenchOptions& options) {
  LowerOptions lowering;
  lowering.step = options.update ? StepKind::kTrain : StepKind::kGradient;
  const Lowered lowered = lower(graph, options.plan, lowering);
  BenchReport report;
  report.ranks = options.plan.num_ranks();
  report.per_rank.resize(report.ranks);
  std::vector<std::vector<double>> starts(report.ranks), ends(report.ranks);
  LocalOptions local{options.real, options.seed, options.threads,
                     std::chrono::milliseconds(int64_t(options.timeout_seconds * 1000))};
  run_local(lowered, local, [&](LocalRank& self) {
    NoiseCache noise(lowered.graph, options.seed);
    const std::unique_ptr<Optimiser> optimiser = sgd({});
    Group everyone;
    for (int rank = 0; rank < report.ranks; ++rank) everyone.push_back(rank);
    StepContext context;
    context.seed = options.seed;
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      noise.load(input, box, target);
    };
    context.update = [&] {
      optimiser->step(self.parameters->values(), self.parameters->gradients());
    };
    TransportCounters before;
    for (int64_t i = 0; i < options.warmup + options.iterations; ++i) {
      barrier(*self.transport, everyone);
      if (i == options.warmup) before = *self.counters;
      starts[self.rank].push_back(now_ms());
      context.step = i;
      self.executor->run(context);
      ends[self.rank].push_back(now_ms());
    }
    const double steps = static_cast<double>(options.iterations);
    RankMeasurement& measured = report.per_rank[self.rank];
    measured.peak_value_bytes = self.executor->memory().peak_value_bytes;
    measured.workspace_bytes = self.executor->memory().peak_workspace_bytes;
    measured.parameter_bytes =
        self.parameters->bytes() +
        (options.update ? optimiser->state_copies() * self.parameters->gradient_bytes() : 0);
    measured.bytes_sent = (self.counters->bytes_sent - before.bytes_sent) / options.iterations;
    measured.messages = (self.counters->messages - before.messages) / options.iterations;
    measured.blocked_ms = 1000 * (self.counters->blocked_seconds - before.blocked_seconds) / steps;
    if (self.rank == 0) report.loss = self.executor->loss();
  });
  std::vector<double> durations;
  for (int64_t i = options.warmup; i < options.warmup + options.iterations; ++i) {
    double start = starts[0][i], end = ends[0][i];
    for (int rank = 1; rank < report.ranks; ++rank) {
      start = std::min(start, starts[rank][i]);
      end = std::max(end, ends[rank][i]);
    }
    durations.push_back(end - start);
  }
  report.median_ms = percentile(durations, 0.5);
  report.p10_ms = percentile(durations, 0.1);
  report.p90_ms = percentile(durations, 0.9);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report.peak_rss_bytes = usage.ru_maxrss * 1024;
  return report;
}

}  // namespace tessera
