#pragma once
// The same network on the same placement for images of another size, whole or by windows.

#include "tessera/job/job.h"
#include "tessera/job/windows.h"

namespace tessera {

/// `own` was resolved from `config`, and is the answer for its own size. For another the batch is
/// as small as the placement allows, since nobody has said that more fits.
Job job_for_size(const JobConfig& config, const Job& own, const Shape& image_shape);

/// Whether an image (channels x space) is no larger than a window, which may be empty. Throws
/// InvalidInput where their axes differ in number.
bool is_within(const Shape& image, const Shape& window);

/// The network that predicts images of a size: for all of the image, or for windows of it where
/// that does not fit, or where `most`, which may be empty, is smaller. Windows are announced on
/// stderr. Throws what choose_windows() throws.
WindowedJob prediction_for_size(const JobConfig& config, const Job& own, const Shape& image_shape,
                                const Shape& most);

}  // namespace tessera
