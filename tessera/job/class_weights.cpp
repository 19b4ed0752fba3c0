#include "tessera/job/class_weights.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/data/in_parallel.h"
#include "tessera/data/label_counts.h"
#include "tessera/graph/domains.h"
#include "tessera/loss/add_losses.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/train/training_job.h"

namespace tessera {

bool asks_for_class_weights(const std::string& loss) {
  return !loss.empty() && std::ranges::any_of(parse_loss(loss).terms, &LossTerm::weights_by_labels);
}

std::vector<double> counted_class_weights(const Job& job, const TrainConfig& config,
                                          std::shared_ptr<const Dataset> data) {
  if (!asks_for_class_weights(config.loss) || data->real_targets()) return {};
  const DatasetSplit split = split_for_training(config, std::move(data));
  return balanced_weights(count_labels(*split.train, num_classes(job.graph()), reading_threads()));
}

Graph with_class_weights(const Graph& graph, const TrainConfig& config,
                         const std::vector<double>& weights) {
  Graph weighted = without_labelled_losses(graph);
  LossOptions losses = loss_options(weighted, config.loss, config.output_weights);
  losses.class_weights = weights;
  add_losses(weighted, losses);
  return weighted;
}

std::vector<double> recorded_class_weights(const std::string& checkpoint) {
  std::vector<double> weights;
  if (!std::filesystem::is_directory(checkpoint)) return weights;
  const Metadata metadata = read_state_file(checkpoint).state.metadata;
  const auto found = metadata.find("class_weights");
  if (found == metadata.end()) return weights;
  for (const std::string& word : split_text(found->second, '/'))
    if (const auto weight = read_number<double>(word)) weights.push_back(*weight);
  return weights;
}

}  // namespace tessera
