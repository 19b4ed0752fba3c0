#include "tessera/job/run_source.h"

#include "tessera/data/open.h"
#include "tessera/train/run_folder.h"
#include "tessera/train/training_job.h"

namespace tessera {

bool names_a_run(const std::string& path) { return is_run_folder(path); }

TrainConfig run_config(const std::string& folder) {
  TrainConfig config = config_of_run(folder);
  config.batch = 0;                    // the input has it, and another input may have another
  config.device = JobConfig().device;  // the run's may be one of another machine
  return config;
}

AppliedData open_applied_data(const TrainConfig& config, const Graph& graph,
                              const std::string& run) {
  Shape sample = graph.type(graph.inputs()[0]).shape();
  sample.erase(sample.begin());
  const std::shared_ptr<const Dataset> data = open_dataset(
      config.data, sample, config.seed, num_classes(graph),
      config.channels_last ? ChannelAxis::kLast : ChannelAxis::kFirst, ImageSizes::kAny);
  if (run.empty()) return {data, data};
  const Intensities intensities = intensities_of_run(run);
  const Preparation preparation = preparation_of(config, {});
  return {laid_out(data, intensities, preparation), laid_out(data, intensities, {}), preparation};
}

}  // namespace tessera
