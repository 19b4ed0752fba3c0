#pragma once
// Base of the tests: a small training job in a folder of its own, on any placement, on threads.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/train/trainer.h"

namespace tessera {

struct Trained {
  TrainOutcome outcome;
  std::vector<at::Tensor> parameters;  // whole, from whoever holds them
};

/// Convolutions, skips, dropout and pixel labels: what could depend on the placement.
Graph network(int64_t batch);
/// A U-Net with group norms, whose gradients are large in every layer from the first step on.
Graph normalised_network(int64_t batch);

/// One stage: ranks that cut the image.
Plan on_grid(std::vector<int64_t> space, int64_t data = 1, std::vector<int64_t> pieces = {});
/// The network cut into as many consecutive parts of the node order as there are stages; with
/// several chunks a stage, dealt out in turn.
Plan on_stages(const Graph& graph, const std::vector<std::vector<int64_t>>& grids,
               int64_t micro_batches, ScheduleKind schedule, int chunks_per_stage = 1);

class Training : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  /// Momentum, a schedule, clipping that has something to do, validation.
  TrainConfig config(const std::string& run, int64_t steps) const;

  /// Ranks that hold the same parameter must end with the same bits. `before` is called with each
  /// rank's trainer.
  using Before = std::function<void(const Trainer&, int rank)>;
  Trained train(const TrainConfig& config, const Plan& plan, const Graph& graph,
                const Before& before = {}) const;
  /// One step, as if somebody had pressed Ctrl-C.
  void train_one_step(const TrainConfig& config, const Plan& plan, const Graph& graph) const;

  /// The largest difference of any parameter, relative to its largest element.
  static double difference(const Trained& a, const Trained& b);
  /// The same of everything in two checkpoints, the optimiser's state included; infinite where they
  /// do not hold the same names.
  static double difference_of_checkpoints(const Trained& a, const Trained& b);

 private:
  std::string folder_;
};

}  // namespace tessera
