#pragma once
// All of a training run that is the same on every rank: the network, its programs for a training
// step and for validation, the data and the order in which it is read. Made once a process, then
// only read.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/augment/prepared.h"
#include "tessera/config/train_config.h"
#include "tessera/data/batch_loader.h"
#include "tessera/data/prefetch.h"
#include "tessera/data/subset.h"
#include "tessera/graph/number_type.h"
#include "tessera/lower/lower.h"
#include "tessera/train/metrics.h"

namespace tessera {

class GrowingCycles;  // growing_cycles.h

/// The programs of a training step.
struct StepLowerings {
  std::vector<std::shared_ptr<const Lowering>> micro_steps;  // one per accumulated batch
  /// The same for the last batch of an epoch where that is smaller; empty where it is not.
  std::vector<std::shared_ptr<const Lowering>> partial_micro_steps;
};

/// Labelled samples that the task is scored on, and its program for a smaller last batch.
struct ValidationSet {
  std::shared_ptr<const Dataset> samples;   // null: none
  std::shared_ptr<const Lowering> partial;  // null: all batches are whole
};

/// A domain beside the source: images alone, in batches and an order of their own.
struct TargetDomain {
  std::shared_ptr<const Dataset> images;
  BatchPlan batches;
  ValidationSet validation = {};  // where --validate-targets asks for it
};

struct TrainingJob {
  TrainConfig config;
  Graph graph;
  Plan plan;
  at::ScalarType real = at::kFloat;
  at::DeviceType device = at::kCPU;  // whose kernels run
  std::shared_ptr<const Dataset> train_set;
  ValidationSet validation_set;
  DatasetSplit images;                                       // that the two sets are cut from
  std::optional<BatchPlan> batches;                          // of the training set
  std::vector<TargetDomain> targets;                         // for the images after the first
  Intensities intensities;                                   // what became of their numbers
  std::vector<std::shared_ptr<const Lowering>> micro_steps;  // one per accumulated batch of a step
  /// The same for the last batch of an epoch where that is smaller; empty where it is not.
  std::vector<std::shared_ptr<const Lowering>> partial_micro_steps;
  std::shared_ptr<GrowingCycles> growing_cycles;  // null: their number stays
  std::shared_ptr<const Lowering> serial_step;    // of --check-serial; null: none
  std::shared_ptr<const Lowering> validation;     // forward, with running statistics; null: none
  std::vector<double> class_weights;  // counted for the loss; a resumed run must have the same
  std::map<std::string, std::string> ties;  // second names of tied parameters in weights files
  /// Writes weights after so many steps to a file, as --save-weights asks for it.
  std::function<void(const std::string& path, const std::vector<at::Tensor>& values, int64_t steps)>
      write_weights;
  int64_t steps_per_epoch = 0;
  int64_t total_steps = 0;

  /// Training batches, one after the other; accumulation takes several of them for a step.
  BatchLoader train_loader() const;
  /// Those of any domain; 0 is the source.
  BatchLoader domain_loader(int domain) const;
  /// Every sample once.
  BatchLoader validation_loader(const ValidationSet& set) const;
  /// Those of the domains that are validated beside the source.
  std::vector<int> validated_targets() const;
};

/// What the configuration asks for between the data and a network that takes these sizes of space
/// (empty: any). Throws InvalidInput.
Preparation preparation_of(const TrainConfig& config, const Shape& network);

/// The data set that config.data names, for the network's images: the source's, of several domains.
std::shared_ptr<const Dataset> open_training_data(const TrainConfig& config, const Graph& graph);

/// Its samples for training and for validation, as the data and the configuration say.
DatasetSplit split_for_training(const TrainConfig& config, std::shared_ptr<const Dataset> data);

/// `data` replaces the data set that config.data names. Throws InvalidInput where model, data and
/// placement do not fit each other.
TrainingJob prepare_training(const TrainConfig& config, const Graph& graph, const Plan& plan,
                             const Numbers& numbers, std::shared_ptr<const Dataset> data = nullptr);

/// The steps of a job with another multigrid; on the same placement, with the same buckets.
StepLowerings lower_steps(const TrainingJob& job, const Multigrid& multigrid);

/// What of a job a Validator reads, for all samples of `data`. Throws InvalidInput where model and
/// data do not fit each other.
TrainingJob prepare_evaluation(const TrainConfig& config, const Graph& graph, const Plan& plan,
                               const Numbers& numbers, std::shared_ptr<const Dataset> data);

/// The field of the data set that an input of a graph takes. Programs name the values of their own,
/// lowered graph.
Field field_of(const Graph& graph, ValueId input);

/// What a program loads of a domain in every step: for prefetching.
std::vector<BatchBox> loads_of(const Graph& graph, const Program& program, int domain = 0);

/// Throws InvalidInput where the images are not of the size that the network takes.
void check_image_shape(const Graph& graph, const Dataset& data);

/// The same for images of any domain: channels x space.
void check_images_fit(const Shape& wanted, const Dataset& data);

ScoredTask scored_task(const Dataset& data);

/// The classes of the first output; one channel tells two classes apart: the score of "no" is 0.
int64_t num_classes(const Graph& graph);

}  // namespace tessera
