#include "tests/ranks/train/training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <mutex>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (b.numel() == 0) return 0;
  const double scale = std::max(1e-3, b.abs().max().item<double>());
  return (a - b).abs().max().item<double>() / scale;
}

/// Adds what one rank holds to the parameters of all.
void merge(const std::vector<at::Tensor>& held, std::vector<at::Tensor>* all) {
  all->resize(held.size());
  for (size_t id = 0; id < held.size(); ++id) {
    if (!held[id].defined()) continue;
    at::Tensor& known = (*all)[id];
    if (known.defined())
      EXPECT_TRUE(known.equal(held[id])) << "two ranks differ in parameter " << id;
    else
      known = held[id].clone();
  }
}

}  // namespace

Graph network(int64_t batch) {
  return build_model("fcn2d:width=0.02,classes=3,dropout=0.4", {batch, 1, 40, 36});
}

Graph normalised_network(int64_t batch) {
  Graph graph;
  const auto block = [&](ValueId x, const std::string& name, int64_t channels) {
    x = convolution(graph, x, fmt::format("{}.conv", name),
                    {.out_channels = channels, .kernel = {3}, .padding = {1}});
    x = group_norm(graph, x, fmt::format("{}.norm", name), {.groups = 2});
    return relu(graph, x, fmt::format("{}.relu", name));
  };
  ValueId x = graph.add_input("image", ValueType::image({batch, 1, 20, 24}));
  const ValueId skip = block(x, "enc1", 4);
  x = block(halve(graph, skip, "pool1"), "enc2", 8);
  x = dropout(graph, x, "drop", {.probability = 0.3});
  x = transposed_convolution(graph, x, "up1", {.out_channels = 4, .kernel = {2}, .stride = {2}});
  x = block(concat(graph, {skip, x}, "dec1.concat"), "dec1", 4);
  finish_with_cross_entropy(graph,
                            convolution(graph, x, "head", {.out_channels = 3, .kernel = {1}}));
  return graph;
}

Plan on_grid(std::vector<int64_t> space, int64_t data, std::vector<int64_t> pieces) {
  Plan plan;
  plan.data = data;
  plan.space = std::move(space);
  plan.pieces = std::move(pieces);
  return plan;
}

Plan on_stages(const Graph& graph, const std::vector<std::vector<int64_t>>& grids,
               int64_t micro_batches, ScheduleKind schedule, int chunks_per_stage) {
  Plan plan;
  plan.stages = grids;
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  const int64_t num_nodes = std::ssize(graph.nodes());
  for (int64_t node = 0; node < num_nodes; ++node) {
    const int64_t chunk = node * plan.num_stages() * chunks_per_stage / num_nodes;
    plan.stage_of[graph.nodes()[node].name] = static_cast<int>(chunk % plan.num_stages());
  }
  return plan;
}

void Training::SetUp() {
  folder_ = fmt::format("{}tessera_train_{}", testing::TempDir(), getpid());
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
}

void Training::TearDown() { std::filesystem::remove_all(folder_); }

TrainConfig Training::config(const std::string& run, int64_t steps) const {
  TrainConfig config;
  config.model = "fcn2d";
  config.data = "synthetic:samples=12,classes=3";
  config.validation_fraction = 0.25;
  config.epochs = std::nullopt;
  config.steps = steps;
  config.seed = 7;
  config.dtype = "float64";
  config.learning_rate = 0.05;
  config.schedule = "cosine";
  config.clip_norm = 0.03;
  config.folder = file(run);
  return resolved(config);
}

Trained Training::train(const TrainConfig& config, const Plan& plan, const Graph& graph,
                        const Before& before) const {
  const TrainingJob job = prepare_training(config, graph, plan, at::kDouble);
  Trained run;
  std::mutex mutex;
  run_on_threads(plan.num_ranks(), 1, 60, [&](Transport& transport) {
    Trainer trainer(job, &transport, "threads");
    if (before) before(trainer, transport.rank());
    const TrainOutcome outcome = trainer.run();
    const std::lock_guard lock(mutex);
    if (transport.rank() == transport.size() - 1) run.outcome = outcome;
    merge(trainer.parameters().values(), &run.parameters);
  });
  return run;
}

void Training::train_one_step(const TrainConfig& config, const Plan& plan,
                              const Graph& graph) const {
  stop_requested = true;
  EXPECT_EQ(train(config, plan, graph).outcome.end, TrainEnd::kInterrupted);
  stop_requested = false;
}

double Training::difference(const Trained& a, const Trained& b) {
  double worst = 0;
  for (size_t i = 0; i < a.parameters.size(); ++i)
    worst = std::max(worst, relative_difference(a.parameters[i], b.parameters[i]));
  return worst;
}

double Training::difference_of_checkpoints(const Trained& a, const Trained& b) {
  const auto load = [](const Trained& run) {
    return CheckpointStore(run.outcome.checkpoint, 1).load(run.outcome.checkpoint).tensors;
  };
  const NamedTensors one = load(a), other = load(b);
  double worst = one.size() == other.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    EXPECT_EQ(one[i].first, other[i].first);
    worst = std::max(worst, relative_difference(one[i].second, other[i].second));
  }
  return worst;
}

}  // namespace tessera
