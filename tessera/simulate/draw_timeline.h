#pragma once
// A timeline as text, one line per rank, for terminals without colours:
//
//          |0             |5             |10    units
//   rank 0 000111......<0<<<<222<1<<<<...<2<<<<  25% idle
//   rank 1 ...000<0<<<<111<1<<<<222<2<<<<......  25% idle
//
// A forward is its micro-batch's digit in every column (0-9, then a-z); a backward is made of <,
// weight gradients of =, with the digit in the second column.

#include <string>

#include "tessera/simulate/timeline.h"

namespace tessera {

/// At most `width` columns of time. With TimeUnit::kTasks a unit takes a whole number of columns
/// where that fits, so that equal tasks look equal; a span too short for a column may not show.
std::string draw_timeline(const Timeline& timeline, int width = 100);

}  // namespace tessera
