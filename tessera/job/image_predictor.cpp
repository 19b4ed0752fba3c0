#include "tessera/job/image_predictor.h"

#include <algorithm>
#include <cmath>

#include "tessera/data/typed_pixels.h"
#include "tessera/job/output_scratch.h"

namespace tessera {
namespace {

constexpr int64_t kNumbersAtOnce = 1 << 21;  // of a strip, or of the outputs around it

Shape with_first(int64_t size, Shape shape) {
  shape.insert(shape.begin(), size);
  return shape;
}

/// How many numbers of the seen grid there are for one of the image's own, at least 1.
double growth(const std::vector<OwnAxis>& axes) {
  double product = 1;
  for (const OwnAxis& axis : axes) product *= std::max(1.0, 1 / axis.ratio);
  return product;
}

}  // namespace

Shape result_shape(const Job& job, const AppliedData& data,
                   const std::vector<ImageWindow>& windows) {
  Shape shape = job.graph().type(job.graph().outputs()[0]).shape();
  shape.erase(shape.begin());
  const bool comes_back = data.comes_back(job.graph());
  if (windows.empty() && !comes_back) return shape;
  const Shape image = (comes_back ? data.own : data.seen)->image_shape_of(0);
  std::copy(image.begin() + 1, image.end(), shape.begin() + 1);
  return shape;
}

ImagePredictor::ImagePredictor(const Job& job, const Lowering& lowering, const AppliedData& data,
                               PredictionWish wish, ParameterStore* parameters,
                               Transport* transport)
    : job_(job),
      data_(data),
      wish_(std::move(wish)),
      transport_(*transport),
      comes_back_(data.comes_back(job.graph())),
      shape_(result_shape(job, data, wish_.windows)),
      predictor_(lowering, lowering.program(transport->rank()), parameters, transport, job.real) {}

int64_t ImagePredictor::samples_in(int64_t batch) const {
  return std::min(batch_size(), data_.seen->size() - batch * batch_size());
}

PredictOptions ImagePredictor::options() const {
  PredictOptions options;
  options.windows = wish_.windows;
  options.flips = wish_.flips;
  options.probabilities = wish_.probabilities || (wish_.classes && by_probabilities());
  return options;
}

at::Tensor ImagePredictor::classes_of(const PredictedBox& predicted) const {
  return by_probabilities() ? classes_of_probabilities(predicted.probabilities)
                            : classes_of_logits(predicted.raw);
}

void ImagePredictor::run_batch(int64_t batch, const TakePrediction& take,
                               const AfterWindow& after_window) {
  if (comes_back_) return bring_back(batch, take, after_window);
  predictor_.run_batch(*data_.seen, batch, options(), take, after_window);
}

void ImagePredictor::run_batch_with_maps(int64_t batch, const TakePrediction& take,
                                         const TakeLabelMap& take_map) {
  LabelMaps maps(Shape(shape_.begin() + 1, shape_.end()), transport_);
  run_batch(
      batch,
      [&](int64_t number, const Box& box, const PredictedBox& predicted) {
        maps.add(classes_of(predicted));
        take(number, box, predicted);
      },
      [&](const std::vector<Piece>& kept) { maps.note_window(kept); });
  for (int64_t entry = 0; entry < samples_in(batch); ++entry)
    if (const at::Tensor map = maps.collect(entry); map.defined())
      take_map(batch * batch_size() + entry, map);
}

/// The image's own grid in strips, which the ranks take in turns.
std::vector<Piece> ImagePredictor::shares_of(int64_t entry,
                                             const std::vector<OwnAxis>& axes) const {
  const Box space = Box::whole(Shape(shape_.begin() + 1, shape_.end()));
  const int64_t ranks = transport_.size();
  const auto held =
      static_cast<int64_t>(static_cast<double>(kNumbersAtOnce / shape_[0]) / growth(axes));
  const int64_t most = std::max<int64_t>(1, std::min(held, (space.volume() + ranks - 1) / ranks));
  std::vector<Piece> shares;
  for_each_strip(space, {}, most, [&](const Box& strip) {
    Box box{{entry, entry + 1}, {0, shape_[0]}};
    for (int axis = 0; axis < strip.num_axes(); ++axis) box.push_back(strip[axis]);
    shares.push_back({box, static_cast<int>(std::ssize(shares) % ranks)});
  });
  return shares;
}

void ImagePredictor::bring_back(int64_t batch, const TakePrediction& take,
                                const AfterWindow& after_window) {
  const PredictOptions seen = options();
  Shape outputs = data_.seen->image_shape_of(0);
  outputs[0] = shape_[0];
  outputs = with_first(batch_size(), outputs);
  const auto scratch = [&](bool wanted, const char* name) {
    return wanted ? std::make_unique<OutputScratch>(wish_.scratch + name, outputs, job_.real,
                                                    transport_)
                  : nullptr;
  };
  const auto raw = scratch(wish_.raw, ".raw");
  const auto probabilities = scratch(seen.probabilities, ".probabilities");
  predictor_.run_batch(*data_.seen, batch, seen,
                       [&](int64_t, const Box& box, const PredictedBox& predicted) {
                         if (raw) raw->write(box, predicted.raw);
                         if (probabilities) probabilities->write(box, predicted.probabilities);
                       });
  if (raw) raw->settle();
  if (probabilities) probabilities->settle();
  for (int64_t entry = 0; entry < samples_in(batch); ++entry) {
    const int64_t sample = batch * batch_size() + entry;
    const std::vector<OwnAxis> axes = own_axes(*data_.own, sample, data_.preparation);
    const PatchMap map = map_from_own_grid(axes);
    const std::vector<Piece> shares = shares_of(entry, axes);
    for (const Piece& share : shares) {
      if (share.rank != transport_.rank()) continue;
      const auto read = [&](const OutputScratch* from) {
        return from == nullptr ? at::Tensor() : from->interpolated(map, share.box);
      };
      take(batch, share.box, {read(raw.get()), read(probabilities.get())});
    }
    if (after_window) after_window(shares);
  }
}

}  // namespace tessera
