#include "tessera/augment/changed_numbers.h"

#include <algorithm>
#include <cmath>

#include "tessera/augment/decorator.h"
#include "tessera/augment/draws.h"
#include "tessera/augment/gaussian_blur.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

class ChangedNumbers : public DatasetDecorator {
 public:
  ChangedNumbers(std::shared_ptr<const Dataset> source, const Augmentation& augmentation,
                 uint64_t seed)
      : DatasetDecorator(std::move(source)),
        changes_(augmentation),
        key_(RandomKey(seed).with("numbers")) {}

  void load_image(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  at::Tensor read_or_blur(const RandomKey& key, Sample sample, const Box& box,
                          const Shape& shape) const;
  void change_each(const RandomKey& key, double* values, int64_t count) const;
  void add_noise(const RandomKey& key, const Box& box, const Shape& shape, double* values) const;
  void drop_boxes(const RandomKey& key, const Box& box, const Shape& shape,
                  at::Tensor values) const;

  const Augmentation changes_;
  const RandomKey key_;
};

at::Tensor ChangedNumbers::read_or_blur(const RandomKey& key, Sample sample, const Box& box,
                                        const Shape& shape) const {
  const RandomKey own = key.with("blur");
  const bool blurs = applies(changes_.blur, own);
  std::vector<double> weights;
  // A sigma near 0 would blur nothing, and divide by it.
  if (blurs) weights = gaussian_weights(std::max(1e-3, changes_.blur->sigma * own.uniform(0)));
  const Box held = blurs ? with_halo(box, shape, std::ssize(weights) - 1) : box;
  at::Tensor read = at::empty(held.shape(), at::kDouble);
  source().load_image(sample, held, read);
  return blurs ? blurred(read, held, box, shape, weights) : read;
}

void ChangedNumbers::change_each(const RandomKey& key, double* values, int64_t count) const {
  if (const RandomKey own = key.with("gamma"); applies(changes_.gamma, own)) {
    const double exponent = drawn_factor(own, 0, changes_.gamma->range);
    for (int64_t i = 0; i < count; ++i)
      values[i] = std::copysign(std::pow(std::abs(values[i]), exponent), values[i]);
  }
  if (const RandomKey own = key.with("contrast"); applies(changes_.contrast, own)) {
    const double factor = drawn_factor(own, 0, changes_.contrast->range);
    const double centre = changes_.contrast->centre;
    for (int64_t i = 0; i < count; ++i) values[i] = centre + factor * (values[i] - centre);
  }
  if (const RandomKey own = key.with("brightness"); applies(changes_.brightness, own)) {
    const double added = changes_.brightness->range * to_both_sides(own, 0);
    for (int64_t i = 0; i < count; ++i) values[i] += added;
  }
}

void ChangedNumbers::add_noise(const RandomKey& key, const Box& box, const Shape& shape,
                               double* values) const {
  const RandomKey own = key.with("noise");
  if (!applies(changes_.noise, own)) return;
  const std::vector<int64_t> no_strides(shape.size(), 0);
  for_each_row(box, no_strides, [&](const Position& position, int64_t) {
    uint64_t index = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis)
      index = index * static_cast<uint64_t>(shape[axis]) + static_cast<uint64_t>(position[axis]);
    for (int64_t i = 0; i < row_length(box); ++i)
      *values++ += changes_.noise->deviation * own.normal(index + static_cast<uint64_t>(i));
  });
}

void ChangedNumbers::drop_boxes(const RandomKey& key, const Box& box, const Shape& shape,
                                at::Tensor values) const {
  const RandomKey own = key.with("dropout");
  if (!applies(changes_.dropout, own)) return;
  const DropoutChange& change = *changes_.dropout;
  for (int64_t number = 0; number < change.boxes; ++number) {
    const RandomKey place = own.with(static_cast<uint64_t>(number));
    at::Tensor inside = values;
    bool empty = false;
    for (int axis = 1; axis < box.num_axes() && !empty; ++axis) {
      const int64_t side = std::llround(change.size * static_cast<double>(shape[axis]));
      const auto centre = static_cast<int64_t>(place.bits(static_cast<uint64_t>(axis)) %
                                               static_cast<uint64_t>(shape[axis]));
      const Range range = intersect({centre - side / 2, centre - side / 2 + side}, box[axis]);
      empty = range.empty();
      if (!empty) inside = inside.narrow(axis, range.begin - box[axis].begin, range.size());
    }
    if (!empty) inside.fill_(change.fill);
  }
}

void ChangedNumbers::load_image(Sample sample, const Box& box, at::Tensor target) const {
  if (box.empty()) return;
  const RandomKey key =
      key_.with(static_cast<uint64_t>(sample.index)).with(static_cast<uint64_t>(sample.epoch));
  const Shape shape = source().image_shape_of(sample);
  const at::Tensor values = read_or_blur(key, sample, box, shape);
  change_each(key, values.data_ptr<double>(), values.numel());
  add_noise(key, box, shape, values.data_ptr<double>());
  drop_boxes(key, box, shape, values);
  target.copy_(values);
}

}  // namespace

std::shared_ptr<const Dataset> with_changed_numbers(std::shared_ptr<const Dataset> source,
                                                    const Augmentation& augmentation,
                                                    uint64_t seed) {
  return std::make_shared<ChangedNumbers>(std::move(source), augmentation, seed);
}

}  // namespace tessera
