#pragma once
// Cuts a row of units into rings around its middle. A stage that holds a ring of a U-Net holds some
// levels of the encoder and the same levels of the decoder, so that their skips never leave it:
//
//     units   0 . . a . . b . . . . . . c . . d . . n
//     stage   0     1     2             1     0           cuts {0, a, b, c, d, n}
//
// Exact, by dynamic programming over (rings so far, where the rest begins, where it ends):
// units⁴ / 24 costs per ring are asked for, so this is for tens of units.

#include <functional>
#include <vector>

namespace tessera {

/// The units [outer_begin, inner_begin) and [inner_end, outer_end).
struct Ring {
  int outer_begin = 0;
  int inner_begin = 0;
  int inner_end = 0;
  int outer_end = 0;
  /// The middle, where it is one part: then the second is empty.
  bool is_one_part() const { return inner_begin == outer_end; }
  bool operator==(const Ring&) const = default;
};

/// What the innermost ring is.
enum class Center {
  kOnePart,   // V: 2 x rings - 1 segments
  kTwoParts,  // GEMS with an even number of stages: 2 x rings segments
};

using RingCost = std::function<double(int ring_index, const Ring& ring)>;

/// Where the segments begin, followed by the number of units, such that the largest ring is
/// smallest; empty where every choice has a ring that costs `limit` or more. All parts have at
/// least one unit. Ring 0 is the outermost.
std::vector<int> best_nesting(int num_units, int num_rings, Center center, const RingCost& cost,
                              double limit);

Ring ring_of(const std::vector<int>& cuts, int ring_index);

}  // namespace tessera
