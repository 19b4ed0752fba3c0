#pragma once
// Where a NIfTI file lies in the world: three ways to say it (a matrix, a rotation, or the size of
// a voxel alone), as one ImageFrame and back.

#include <array>
#include <cstdint>

#include "tessera/images/image_frame.h"

namespace tessera {

struct NiftiFrameFields {
  std::array<double, 4> pixdim{};  // the sign of the rotation's third axis, then x y z
  int64_t units = 0;
  int64_t qform_code = 0, sform_code = 0;
  std::array<double, 3> quaternion{}, offset{};
  std::array<double, 12> srow{};
};

/// The matrix where its code is set, else the rotation, else the voxel's size; one that is not
/// finite or has a voxel without extent is passed over. `with_depth`: the image has an axis z.
ImageFrame frame_of(NiftiFrameFields fields, bool with_depth);

/// The matrix of the frame, and the rotation as well where there is no shear.
NiftiFrameFields fields_of(const ImageFrame& frame);

}  // namespace tessera
