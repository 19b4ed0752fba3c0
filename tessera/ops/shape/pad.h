#pragma once
// Pixels around an image: a constant, the image mirrored at its border, its border pixel, or the
// image's other end; or a crop, where the number is negative. Each side of each spatial axis has
// its own number. Sources lie near the border, so a piece reads its own surroundings; only circular
// padding reaches across the image, and then reads the few pixels of the other end alone.
//
// Example:
//   ValueId y = pad(graph, x, "pad",
//                   {.low = {1, 1}, .high = {1, 1}, .mode = PadOptions::Mode::kReflect});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// One entry per spatial axis. Only constant padding takes negative numbers, and leaves at least
/// one pixel of the input. Reflection needs more pixels than padding along each axis, and circular
/// padding at least as many.
struct PadOptions {
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  enum class Mode { kConstant, kReflect, kReplicate, kCircular } mode = Mode::kConstant;
  double value = 0;  // of constant padding
};

/// Circular padding is one node for each padded axis, and none where nothing is padded.
ValueId pad(Graph& graph, ValueId x, const std::string& name, const PadOptions& options);

/// Constant padding of the image `x` to the spatial sizes `size`, or a crop to them, as an
/// expression of TorchScript (script.h); all names are expressions.
enum class PadWhere { kEnd, kBothEnds };
std::string padded_script(const std::string& x, const std::vector<std::string>& size,
                          PadWhere where, double value = 0);

}  // namespace tessera
