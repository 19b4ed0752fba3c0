#include "tessera/job/predict.h"

#include <filesystem>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/comm/together.h"
#include "tessera/data/subset.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/forecast.h"
#include "tessera/job/result_file.h"
#include "tessera/job/sized_job.h"
#include "tessera/job/windows.h"
#include "tessera/train/components.h"
#include "tessera/train/label_maps.h"
#include "tessera/train/training_job.h"

namespace tessera {
namespace {

/// How the images of one size are predicted.
struct Applied {
  const Job& job;
  const Lowering& lowering;
  std::vector<ImageWindow> windows;  // none: images are seen whole
  Shape output_shape;                // of one sample: channels x space
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

/// The results of a prediction, as far as they are wanted.
class Results {
 public:
  Results(const PredictRequest& request, const Applied& applied, const Dataset& data,
          Transport& transport)
      : num_samples_(data.size()), by_probabilities_(request.flips) {
    std::vector<std::string> names;
    std::vector<ImageFrame> frames;
    for (int64_t sample = 0; sample < data.size(); ++sample) {
      names.push_back(data.name_of(sample));
      frames.push_back(data.frame_of(sample));
    }
    const Shape& shape = applied.output_shape;
    const int num_spatial = static_cast<int>(shape.size()) - 1;
    const auto files = [&](const std::string& path, PixelType type, const Shape& of_sample) {
      const bool has_channels = of_sample.size() == shape.size();
      const ArrayInfo info{of_sample, result_axes(num_spatial, has_channels), type};
      return ResultFiles(path, request.ending, info, names, frames, transport);
    };
    const PixelType real =
        applied.job.real == at::kDouble ? PixelType::kFloat64 : PixelType::kFloat32;
    kinds_.push_back(files(request.classes, shape[0] <= 256 ? PixelType::kUint8 : PixelType::kInt64,
                           Shape(shape.begin() + 1, shape.end())));
    kinds_.push_back(files(request.probabilities, PixelType::kFloat32, shape));
    kinds_.push_back(files(request.raw, real, shape));
  }

  ResultFiles& classes() { return kinds_[0]; }
  ResultFiles& probabilities() { return kinds_[1]; }
  ResultFiles& raw() { return kinds_[2]; }

  /// The first samples of a batch, as many as there are.
  void begin_batch(int64_t first, int64_t batch_size) {
    first_ = first;
    const int64_t count = std::min(batch_size, num_samples_ - first);
    for (ResultFiles& kind : kinds_) kind.begin_samples(first, count);
  }
  void end_batch() {
    for (ResultFiles& kind : kinds_) kind.end_samples();
  }
  void finish() {
    for (ResultFiles& kind : kinds_) kind.finish();
  }

  enum class ClassMaps { kWrite, kLeave };
  /// `box` counts the samples of the batch; those that only fill it up are left out.
  void write(Box box, const PredictedBox& predicted, ClassMaps class_maps) {
    box[0] = box[0].shifted(first_);
    const int64_t kept = std::min(box[0].end, num_samples_) - box[0].begin;
    if (kept <= 0) return;
    box[0].end = box[0].begin + kept;
    const at::Tensor own = predicted.raw.narrow(0, 0, kept);
    const at::Tensor shares = predicted.probabilities.defined()
                                  ? predicted.probabilities.narrow(0, 0, kept)
                                  : at::Tensor();
    if (raw().wanted()) raw().write(box, own);
    if (probabilities().wanted()) probabilities().write(box, shares);
    if (classes().wanted() && class_maps == ClassMaps::kWrite)
      classes().write(without_axis(box, 1), by_probabilities_ ? classes_of_probabilities(shares)
                                                              : classes_of_logits(own));
  }

 private:
  const int64_t num_samples_;
  const bool by_probabilities_;  // classes are those of mean probabilities
  std::vector<ResultFiles> kinds_;
  int64_t first_ = 0;
};

void write_cleaned_map(ResultFiles& files, int64_t sample, const at::Tensor& map,
                       const std::vector<int64_t>& cleaned) {
  for (int64_t k : cleaned) keep_largest_component(map, k, 0);
  Box box{{sample, sample + 1}};
  for (int64_t size : map.sizes()) box.push_back({0, size});
  files.write(box, map.unsqueeze(0));
}

void predict_rank(const PredictRequest& request, const Applied& applied, const Dataset& data,
                  Transport& transport) {
  const Job& job = applied.job;
  Program program = applied.lowering.program(transport.rank());
  ParameterStore parameters(job.graph(), program.parameters, job.seed, job.real);
  do_together(transport,
              [&] { load_applied_weights(request.weights, job.model, parameters.values()); });
  Results results(request, applied, data, transport);
  PredictOptions options;
  options.windows = applied.windows;
  options.flips = request.flips;
  options.probabilities = request.flips || results.probabilities().wanted();
  const std::vector<int64_t> cleaned =
      classes_to_clean(request.largest_component, num_classes(job.graph()));
  Predictor predictor(applied.lowering, std::move(program), &parameters, &transport, job.real);
  for (int64_t batch = 0; batch < predictor.num_batches(data); ++batch) {
    results.begin_batch(batch * predictor.batch_size(), predictor.batch_size());
    const auto write = [&](Results::ClassMaps class_maps) {
      return [&results, class_maps](int64_t, const Box& box, const PredictedBox& predicted) {
        results.write(box, predicted, class_maps);
      };
    };
    if (cleaned.empty() || !results.classes().wanted())
      predictor.run_batch(data, batch, options, write(Results::ClassMaps::kWrite));
    else
      predict_label_maps(predictor, data, batch, options,
                         Shape(applied.output_shape.begin() + 1, applied.output_shape.end()),
                         write(Results::ClassMaps::kLeave),
                         [&](int64_t sample, const at::Tensor& map) {
                           write_cleaned_map(results.classes(), sample, map, cleaned);
                         });
    results.end_batch();
  }
  results.finish();
}

void check_request(const Job& job, const PredictRequest& request) {
  if (request.weights.empty() && job.model.file.empty())
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  if (request.classes.empty() && request.raw.empty() && request.probabilities.empty())
    throw_error<InvalidInput>(
        "[--output] give it, --probabilities or --raw, or there is no result");
  if (!request.largest_component.empty() && request.classes.empty())
    throw_error<InvalidInput>("[--largest-component] is about class maps; give --output, too");
  classes_to_clean(request.largest_component, num_classes(job.graph()));
}

/// `image` is channels x space of what is predicted, whole.
Shape output_shape_of(const Job& job, const std::vector<ImageWindow>& windows, const Shape& image) {
  Shape output = job.graph().type(job.graph().outputs()[0]).shape();
  output.erase(output.begin());
  if (!windows.empty()) std::copy(image.begin() + 1, image.end(), output.begin() + 1);
  return output;
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

void predict_size(const Job& job, const std::vector<ImageWindow>& windows, const Dataset& data,
                  const PredictRequest& request) {
  const Lowering lowering = lower_prediction(job.graph(), job.plan, job.real);
  forecast_within_limits(job, lowering, where_ranks_live(job));
  const Applied applied{job, lowering, windows,
                        output_shape_of(job, windows, data.image_shape_of(0))};
  check_label_maps(request, applied.output_shape);
  run_on_ranks(job.plan.num_ranks(), job.launch,
               [&](Transport& transport) { predict_rank(request, applied, data, transport); });
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
          option, groups.size(), to_string(groups[0].image_shape), to_string(groups[1].image_shape),
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

void say_windows(const Shape& image, const WindowedJob& windowed) {
  if (is_secondary_process()) return;
  const Shape window = windowed.job.graph().type(windowed.job.graph().inputs()[0]).shape();
  print_error("an image of {} is predicted by {} of {}, which gives the same numbers\n",
              to_string(Shape(image.begin() + 1, image.end())),
              counted(std::ssize(windowed.windows), "window"),
              to_string(Shape(window.begin() + 2, window.end())));
}

bool is_within(const Shape& image, const Shape& window) {
  if (window.empty()) return true;
  if (window.size() + 1 != image.size())
    throw_error<InvalidInput>("[--window] {} has {} axes, an image of {} has {}", to_string(window),
                              window.size(), to_string(image), image.size() - 1);
  return std::equal(window.begin(), window.end(), image.begin() + 1, std::greater_equal<>());
}

}  // namespace

void predict(const Job& job, const Dataset& data, const PredictRequest& request) {
  check_request(job, request);
  check_files(data, groups_by_size(data), request);
  check_image_shape(job.graph(), data);
  predict_size(job, {}, data, request);
}

void predict(const JobConfig& config, const Dataset& data, const PredictRequest& request) {
  const Job own = resolve_job(config);
  check_request(own, request);
  const std::vector<SizeGroup> groups = groups_by_size(data);
  check_files(data, groups, request);
  const std::shared_ptr<const Dataset> all(&data, [](const Dataset*) {});
  for (const SizeGroup& group : groups) {
    const Subset samples(all, group.samples);
    const Job job = job_for_size(config, own, group.image_shape);
    std::string shortage;
    if (is_within(group.image_shape, request.window) && prediction_fits(job, &shortage)) {
      predict_size(job, {}, samples, request);
      continue;
    }
    const WindowedJob windowed = choose_windows(job, request.window, [&](const Shape& window) {
      return job_for_size(config, job, window);
    });
    say_windows(group.image_shape, windowed);
    predict_size(windowed.job, windowed.windows, samples, request);
  }
}

}  // namespace tessera
