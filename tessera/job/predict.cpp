#include "tessera/job/predict.h"

#include <filesystem>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/together.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/choose_device.h"
#include "tessera/job/forecast.h"
#include "tessera/job/image_predictor.h"
#include "tessera/job/prediction_results.h"
#include "tessera/job/sized_job.h"
#include "tessera/job/written_files.h"
#include "tessera/train/components.h"
#include "tessera/train/training_job.h"

namespace tessera {
namespace {

/// How the images of one size are predicted.
struct Applied {
  const Job& job;
  const Lowering& lowering;
  const AppliedData& data;
  std::vector<ImageWindow> windows;  // none: images are seen whole
  ResultPlace place;
};

/// Which classes --largest-component names.
std::vector<int64_t> classes_to_clean(const std::string& text, int64_t num_classes) {
  std::vector<int64_t> classes;
  if (text.empty()) return classes;
  if (text == "all") {
    for (int64_t k = 1; k < num_classes; ++k) classes.push_back(k);
    return classes;
  }
  for (const std::string& word : split_text(text, ',')) {
    const std::optional<int64_t> k = read_number<int64_t>(word);
    if (!k || *k < 1 || *k >= num_classes)
      throw_error<InvalidInput>(
          "[--largest-component] '{}' is not a class that can be cleaned; use all, or numbers from "
          "1 to {}",
          word, num_classes - 1);
    classes.push_back(*k);
  }
  return classes;
}

void write_cleaned_map(ResultFiles& files, int64_t sample, const at::Tensor& map,
                       const std::vector<int64_t>& cleaned) {
  for (int64_t k : cleaned) keep_largest_component(map, k, 0);
  Box box{{sample, sample + 1}};
  for (int64_t size : map.sizes()) box.push_back({0, size});
  files.write(box, map.unsqueeze(0));
}

/// Scratch files lie beside a result, on a disk that can hold it and that all ranks see.
std::string scratch_beside(const ResultPlace& place) {
  const PredictRequest& request = place.request;
  for (const std::string* path : {&request.classes, &request.probabilities, &request.raw})
    if (!path->empty()) return names_a_folder(*path) ? *path + place.images.name_of(0) : *path;
  return {};
}

void predict_rank(const Applied& applied, Transport& transport) {
  const PredictRequest& request = applied.place.request;
  const Job& job = applied.job;
  const std::unique_ptr<Device> device = open_rank_device(job, transport);
  ParameterStore parameters(job.graph(), applied.lowering.program(transport.rank()).parameters,
                            job.seed, job.real, *device);
  do_together(transport,
              [&] { load_applied_weights(request.weights, job.model, parameters.values()); });
  PredictionResults results(applied.place, transport);
  ImagePredictor predictor(job, applied.lowering, applied.data,
                           {.windows = applied.windows,
                            .flips = request.flips,
                            .raw = results.raw().wanted(),
                            .probabilities = results.probabilities().wanted(),
                            .classes = results.classes().wanted(),
                            .scratch = scratch_beside(applied.place)},
                           &parameters, &transport);
  const std::vector<int64_t> cleaned =
      classes_to_clean(request.largest_component, num_classes(job.graph()));
  for (int64_t batch = 0; batch < predictor.num_batches(); ++batch) {
    results.begin_batch(batch * predictor.batch_size(), predictor.batch_size());
    const auto write = [&](int64_t, const Box& box, const PredictedBox& predicted) {
      const bool has_classes = results.classes().wanted() && cleaned.empty();
      results.write(box, predicted, has_classes ? predictor.classes_of(predicted) : at::Tensor());
    };
    if (cleaned.empty())
      predictor.run_batch(batch, write);
    else
      predictor.run_batch_with_maps(batch, write, [&](int64_t sample, const at::Tensor& map) {
        write_cleaned_map(results.classes(), sample, map, cleaned);
      });
    results.end_batch();
  }
  results.finish();
}

void check_request(const Job& job, const PredictRequest& request) {
  if (request.weights.empty() && !job.model.has_weights)
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  if (request.classes.empty() && request.raw.empty() && request.probabilities.empty())
    throw_error<InvalidInput>(
        "[--output] give it, --probabilities or --raw, or there is no result");
  if (!request.largest_component.empty() && request.classes.empty())
    throw_error<InvalidInput>("[--largest-component] is about class maps; give --output, too");
  classes_to_clean(request.largest_component, num_classes(job.graph()));
}

void check_label_maps(const PredictRequest& request, const Shape& output) {
  int64_t pixels = 1;
  for (size_t axis = 1; axis < output.size(); ++axis) pixels *= output[axis];
  if (!request.largest_component.empty() && pixels > kMostLabelsHeld)
    throw_error<InvalidInput>(
        "[--largest-component] a class map of {} has {} pixels, and one worker looks at all of it; "
        "at most {} can be cleaned",
        to_string(Shape(output.begin() + 1, output.end())), pixels, kMostLabelsHeld);
}

/// Images of one size, and how they are seen.
struct SizedPrediction {
  AppliedData data;
  WindowedJob seen;
};

/// Whatever will be written is known before anything is computed.
void check_results(const Dataset& data, const std::vector<SizedPrediction>& parts,
                   const PredictRequest& request) {
  std::vector<WrittenFile> files = request.drawings;
  for (const auto& [samples, seen] : parts) {
    const ResultPlace place = result_place(seen.job, samples, seen.windows, request);
    check_label_maps(request, place.shape);
    const std::vector<WrittenFile> results = files_of_results(place);
    files.insert(files.end(), results.begin(), results.end());
  }
  check_images_stay(data, files);
}

void predict_size(const Job& job, const std::vector<ImageWindow>& windows, const AppliedData& data,
                  const PredictRequest& request) {
  const Lowering lowering = lower_prediction(job.graph(), job.plan, job.numbers());
  forecast_within_limits(job, lowering, where_ranks_live(job));
  const Applied applied{job, lowering, data, windows, result_place(job, data, windows, request)};
  run_on_ranks(job.plan.num_ranks(), job.launch,
               [&](Transport& transport) { predict_rank(applied, transport); });
}

/// In words; where two grids differ, both.
std::string sizes_of(const SizeGroup& group) {
  const std::string seen = to_string(group.image_shape), own = to_string(group.own_shape);
  return seen == own ? own : fmt::format("{} (seen as {})", own, seen);
}

/// Sizes that differ need files that differ, and each file a name of its own.
void check_files(const Dataset& data, const std::vector<SizeGroup>& groups,
                 const PredictRequest& request) {
  std::map<std::string, int64_t> samples;
  for (const auto& [option, path] :
       {std::pair{"--output", request.classes}, std::pair{"--probabilities", request.probabilities},
        std::pair{"--raw", request.raw}}) {
    if (path.empty()) continue;
    if (!names_a_folder(path) && groups.size() > 1)
      throw_error<InvalidInput>(
          "[{}] the images have {} sizes, {} and {} among them, and do not fit one file; give a "
          "folder for a file each: {}/",
          option, groups.size(), sizes_of(groups[0]), sizes_of(groups[1]),
          std::filesystem::path(path).replace_extension().string());
    if (!names_a_folder(path) || !samples.empty()) continue;
    for (int64_t sample = 0; sample < data.size(); ++sample) {
      const auto [other, is_new] = samples.try_emplace(data.name_of(sample), sample);
      if (!is_new)
        throw_error<InvalidInput>("[{}] samples {} and {} are both called {}; rename one of them",
                                  option, other->second, sample, other->first);
    }
  }
}

}  // namespace

void predict(const Job& job, const Dataset& data, const PredictRequest& request) {
  const AppliedData applied = AppliedData::as_it_is(data);
  check_request(job, request);
  check_files(data, groups_by_size(applied), request);
  check_image_shape(job.graph(), data);
  const SizedPrediction whole{applied, {job, {}}};
  check_results(data, {whole}, request);
  predict_size(job, {}, applied, request);
}

void predict(const JobConfig& config, const AppliedData& data, const PredictRequest& request) {
  const Job own = resolve_job(config);
  check_request(own, request);
  const std::vector<SizeGroup> groups = groups_by_size(data);
  check_files(*data.own, groups, request);
  std::vector<SizedPrediction> parts;
  for (const SizeGroup& group : groups)
    parts.push_back({data.of(group.samples),
                     prediction_for_size(config, own, group.image_shape, request.window)});
  check_results(*data.own, parts, request);
  for (const auto& [samples, seen] : parts) predict_size(seen.job, seen.windows, samples, request);
}

void predict(const JobConfig& config, const Dataset& data, const PredictRequest& request) {
  predict(config, AppliedData::as_it_is(data), request);
}

}  // namespace tessera
