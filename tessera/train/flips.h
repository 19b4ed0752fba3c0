#pragma once
// Images that are turned round along some of their spatial axes, on any placement. A box of the
// turned image is the mirrored box of the image, so nobody reads more than its own part. Of the
// output, which is cut as that of the image itself, a rank then has a box that lies on the other
// side, and the boxes go back to those who own them: elements move, and nothing is added.
//
// A set of axes is a number: bit i stands for spatial axis i.

#include <ATen/ATen.h>

#include <map>

#include "tessera/comm/transport.h"
#include "tessera/geometry/layout.h"

namespace tessera {

using FlippedAxes = unsigned;

/// The box that holds, in a value of this shape, what `box` holds in the turned one.
Box mirrored(const Box& box, const Shape& shape, int first_spatial, FlippedAxes axes);
at::Tensor turned(const at::Tensor& tensor, int first_spatial, FlippedAxes axes);

/// Parts of a value by the pieces of its layout.
using PieceTensors = std::map<int, at::Tensor>;

/// Collective over the owners of a layout. `own` has this rank's pieces of a value that was
/// computed from the turned image; returns its pieces of the value turned back. Point-to-point: one
/// message for each pair of pieces that meet, and each element is sent at most once.
PieceTensors turn_back(const Layout& layout, int first_spatial, FlippedAxes axes,
                       const PieceTensors& own, Transport& transport);

}  // namespace tessera
