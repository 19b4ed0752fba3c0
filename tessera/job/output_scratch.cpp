#include "tessera/job/output_scratch.h"

#include "tessera/comm/together.h"
#include "tessera/images/formats.h"

namespace tessera {

OutputScratch::OutputScratch(const std::string& path, const Shape& shape, at::ScalarType real,
                             Transport& transport)
    : transport_(transport),
      shape_(shape),
      real_(real),
      file_(
          path + ".npy",
          {.shape = shape, .type = real == at::kDouble ? PixelType::kFloat64 : PixelType::kFloat32},
          transport) {}

void OutputScratch::settle() {
  file_.settle();
  // Its ending does not say the format.
  do_together(transport_,
              [&] { reader_ = std::make_unique<ArrayReader>(open_npy(file_.place(), {})); });
}

at::Tensor OutputScratch::interpolated(const PatchMap& map, const Box& box) const {
  const int64_t entry = box[0].begin;
  const ImageReader outputs{Shape(shape_.begin() + 2, shape_.end()), true,
                            [&](const Box& wanted, at::Tensor target) {
                              Box of_batch{{entry, entry + 1}};
                              for (int axis = 0; axis < wanted.num_axes(); ++axis)
                                of_batch.push_back(wanted[axis]);
                              reader_->read(of_batch, target.unsqueeze(0));
                            }};
  at::Tensor made = at::empty(box.shape(), real_);
  interpolate(outputs, map, without_axis(box, 0), {Outside::kNearest}, made.squeeze(0));
  return made;
}

}  // namespace tessera
