#include "tessera/job/prediction_results.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/job/image_predictor.h"

namespace tessera {
namespace {

/// One of the kinds of results.
struct ResultKind {
  const char* option;
  std::string path;
  ArrayInfo array;
};

std::vector<ResultKind> kinds_of(const ResultPlace& place) {
  const Shape& shape = place.shape;
  const int num_spatial = static_cast<int>(shape.size()) - 1;
  const PixelType real = place.real == at::kDouble ? PixelType::kFloat64 : PixelType::kFloat32;
  const PixelType labels = shape[0] <= 256 ? PixelType::kUint8 : PixelType::kInt64;
  const std::string space = result_axes(num_spatial, false), all = result_axes(num_spatial, true);
  return {
      {"--output",
       place.request.classes,
       {.shape = Shape(shape.begin() + 1, shape.end()), .axes = space, .type = labels}},
      {"--probabilities",
       place.request.probabilities,
       {.shape = shape, .axes = all, .type = PixelType::kFloat32}},
      {"--raw", place.request.raw, {.shape = shape, .axes = all, .type = real}},
  };
}

std::string file_of_sample(const ResultPlace& place, const ResultKind& kind, int64_t sample) {
  if (!names_a_folder(kind.path)) return kind.path;
  const std::string& asked = place.request.ending;
  const std::vector<std::string> files = place.images.files_of(sample);
  const std::string ending =
      asked.empty() ? result_ending(files.empty() ? "" : files.front(), kind.array) : asked;
  return (std::filesystem::path(kind.path) / (place.images.name_of(sample) + ending)).string();
}

}  // namespace

ResultPlace result_place(const Job& job, const AppliedData& data,
                         const std::vector<ImageWindow>& windows, const PredictRequest& request) {
  const Dataset& images = data.comes_back(job.graph()) ? *data.own : *data.seen;
  return {request, images, result_shape(job, data, windows), job.real};
}

PredictionResults::PredictionResults(const ResultPlace& place, Transport& transport)
    : num_samples_(place.images.size()) {
  for (const ResultKind& kind : kinds_of(place)) {
    std::vector<SampleResult> samples;
    for (int64_t sample = 0; sample < num_samples_ && !kind.path.empty(); ++sample)
      samples.push_back({file_of_sample(place, kind, sample), place.images.frame_of(sample)});
    kinds_.emplace_back(kind.path, kind.array, std::move(samples), transport);
  }
}

void PredictionResults::begin_batch(int64_t first, int64_t batch_size) {
  first_ = first;
  const int64_t count = std::min(batch_size, num_samples_ - first);
  for (ResultFiles& kind : kinds_) kind.begin_samples(first, count);
}

void PredictionResults::end_batch() {
  for (ResultFiles& kind : kinds_) kind.end_samples();
}

void PredictionResults::finish() {
  for (ResultFiles& kind : kinds_) kind.finish();
}

void PredictionResults::write(Box box, const PredictedBox& predicted,
                              const at::Tensor& class_maps) {
  box[0] = box[0].shifted(first_);
  const int64_t kept = std::min(box[0].end, num_samples_) - box[0].begin;
  if (kept <= 0) return;
  box[0].end = box[0].begin + kept;
  if (raw().wanted()) raw().write(box, predicted.raw.narrow(0, 0, kept));
  if (probabilities().wanted())
    probabilities().write(box, predicted.probabilities.narrow(0, 0, kept));
  if (classes().wanted() && class_maps.defined())
    classes().write(without_axis(box, 1), class_maps.narrow(0, 0, kept));
}

std::string class_map_file(const ResultPlace& place, int64_t sample) {
  return file_of_sample(place, kinds_of(place).front(), sample);
}

std::vector<WrittenFile> files_of_results(const ResultPlace& place) {
  std::vector<WrittenFile> files;
  for (const ResultKind& kind : kinds_of(place)) {
    if (kind.path.empty()) continue;
    const int64_t count = names_a_folder(kind.path) ? place.images.size() : 1;
    for (int64_t sample = 0; sample < count; ++sample)
      files.push_back({kind.option, file_of_sample(place, kind, sample)});
  }
  return files;
}

}  // namespace tessera
