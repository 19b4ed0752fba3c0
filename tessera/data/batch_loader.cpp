#include "tessera/data/batch_loader.h"

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {

Shape BatchLoader::shape(Field field) const {
  Shape shape = field == Field::kImages ? dataset_.image_shape() : dataset_.target_shape();
  shape.insert(shape.begin(), plan_.batch_size());
  return shape;
}

void BatchLoader::load(const BatchBox& request, int64_t batch, at::Tensor target) const {
  const Box& box = request.box;
  check_request("batch", shape(request.field), box, target);
  if (box.empty()) return;
  Box sample_box;
  for (int axis = 1; axis < box.num_axes(); ++axis) sample_box.push_back(box[axis]);
  for (int64_t entry = box[0].begin; entry < box[0].end; ++entry) {
    const Sample sample(plan_.sample(batch, entry), plan_.epoch_of(batch));
    at::Tensor part = target.select(0, entry - box[0].begin);
    if (request.field == Field::kImages)
      dataset_.load_image(sample, sample_box, part);
    else if (plan_.is_padding(batch, entry) && !dataset_.real_targets())
      part.fill_(kIgnoreLabel);
    else
      dataset_.load_target(sample, sample_box, part);
  }
}

}  // namespace tessera
