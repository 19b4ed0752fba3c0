#include "tessera/job/run_source.h"

#include "tessera/data/open.h"
#include "tessera/train/run_folder.h"
#include "tessera/train/training_job.h"

namespace tessera {

bool names_a_run(const std::string& path) { return is_run_folder(path); }

TrainConfig run_config(const std::string& folder) {
  TrainConfig config = config_of_run(folder);
  config.batch = 0;  // the input has it, and another input may have another
  return config;
}

std::unique_ptr<Dataset> open_applied_data(const TrainConfig& config, const Graph& graph) {
  Shape sample = graph.type(graph.inputs()[0]).shape();
  sample.erase(sample.begin());
  return open_dataset(config.data, sample, config.seed, num_classes(graph),
                      config.channels_last ? ChannelAxis::kLast : ChannelAxis::kFirst,
                      ImageSizes::kAny);
}

}  // namespace tessera
