#pragma once
// A placement drawn in the terminal: the workers' parts of the image with their sizes, and the
// borders that halos cross.

#include <string>

#include "tessera/geometry/layout.h"
#include "tessera/plan/plan.h"

namespace tessera::cli {

/// Draws the last two spatial axes of the first replica (one axis as a row); further spatial axes
/// are drawn as layers, one below the other. Borders crossed by halos are shaded.
std::string draw_grid(const Layout& input, const Plan& plan);

}  // namespace tessera::cli
