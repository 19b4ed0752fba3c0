#pragma once
// Images beyond memory, seen by windows, exactly. A network for a part of the image gives the same
// numbers as one for all of it wherever its output depends on nothing outside of the part:
//
//   image      |--------------------------------------------|
//   window 1   |==kept===========|.margin.|
//   window 2             |.margin.|==kept======|.margin.|
//   window 3                          |.margin.|==kept======|
//
// Margins are as wide as the network sees; windows begin on multiples of its strides, and the ends
// of the image are ends of windows, so that padding is where it was. None of that is taken for
// granted: the boxes that every operator reads for what is kept are compared with those that it
// would read in the whole image, and a network that looks at the whole image (statistics of the
// image, attention, pooling of all of it) is refused.

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/job/job.h"
#include "tessera/train/predictor.h"

namespace tessera {

/// `whole` and `part` are one network, for inference and without losses, for the image and for a
/// part of it. Throws InvalidInput, with the reason, where no windows of that size are exact.
std::vector<ImageWindow> exact_windows(const Graph& whole, const Graph& part);

/// What windows begin on, per spatial axis: the least step that is a whole number of pixels in
/// every value of the graph.
Shape window_steps(const Graph& graph);

struct WindowedJob {
  Job job;  // for a window
  std::vector<ImageWindow> windows;
};

/// Whether a job's network can be applied to a whole image, within the job's limit and what this
/// machine has. Else `reason` says what it needs.
bool prediction_fits(const Job& job, std::string* reason);

/// The largest windows that fit, with the copies that kernels make where there are such windows,
/// and are not larger than `most`, where that is given. `job_for` makes the network for a size of
/// images (channels x space). Where there are none, throws OutOfMemory, with the reason, or
/// InvalidInput where the whole image would fit.
WindowedJob choose_windows(const Job& whole, const Shape& most,
                           const std::function<Job(const Shape&)>& job_for);

}  // namespace tessera
