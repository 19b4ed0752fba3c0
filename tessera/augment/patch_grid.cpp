#include <algorithm>

#include "tessera/augment/axis_map.h"
#include "tessera/augment/patch_targets.h"
#include "tessera/augment/patches.h"

namespace tessera {
namespace {

class PatchGrid : public PatchesOf {
 public:
  PatchGrid(std::shared_ptr<const Dataset> source, const Shape& size, double fill);

  int64_t size() const override { return std::ssize(places_); }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  struct Place {
    int64_t image;
    std::vector<int64_t> origin;
  };
  void add_places(int64_t image);
  int64_t image_of(int64_t sample) const override {
    return places_.at(static_cast<size_t>(sample)).image;
  }
  AxisMap axes(const Place& place) const { return crop_at(place.origin, patch()); }

  std::vector<Place> places_;
  double fill_;
};

PatchGrid::PatchGrid(std::shared_ptr<const Dataset> source, const Shape& size, double fill)
    : PatchesOf(std::move(source), size), fill_(fill) {
  for (int64_t image = 0; image < this->source().size(); ++image) add_places(image);
}

void PatchGrid::add_places(int64_t image) {
  const Shape shape = source().image_shape_of(image);
  Place place{image, {}};
  if (!targets_have_pixels()) {
    for (size_t axis = 0; axis < patch().size(); ++axis)
      place.origin.push_back((shape[axis + 1] - patch()[axis]) / 2);
    places_.push_back(place);
    return;
  }
  Shape counts;
  for (size_t axis = 0; axis < patch().size(); ++axis)
    counts.push_back((shape[axis + 1] + patch()[axis] - 1) / patch()[axis]);
  for (int64_t index = 0; index < Box::whole(counts).volume(); ++index) {
    place.origin.assign(patch().size(), 0);
    int64_t rest = index;
    for (size_t axis = patch().size(); axis-- > 0; rest /= counts[axis]) {
      const int64_t begin = rest % counts[axis] * patch()[axis];
      const int64_t last = std::max<int64_t>(0, shape[axis + 1] - patch()[axis]);
      place.origin[axis] = source().real_targets() ? std::min(begin, last) : begin;
    }
    places_.push_back(place);
  }
}

void PatchGrid::load_image(Sample sample, const Box& box, at::Tensor target) const {
  const Place& place = places_.at(static_cast<size_t>(sample.index));
  copy_by_axes(image_reader(source(), {place.image, sample.epoch}), axes(place), box, fill_,
               target);
}

void PatchGrid::load_target(Sample sample, const Box& box, at::Tensor target) const {
  const Place& place = places_.at(static_cast<size_t>(sample.index));
  const Sample image(place.image, sample.epoch);
  if (!targets_have_pixels()) return source().load_target(image, box, target);
  const double fill = source().real_targets() ? 0 : static_cast<double>(kIgnoreLabel);
  copy_by_axes(target_reader(source(), image), axes(place), box, fill, target);
}

}  // namespace

std::shared_ptr<const Dataset> patch_grid(std::shared_ptr<const Dataset> source, const Shape& size,
                                          double fill) {
  return std::make_shared<PatchGrid>(std::move(source), size, fill);
}

}  // namespace tessera
