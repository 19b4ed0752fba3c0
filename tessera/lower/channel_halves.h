#pragma once
// A norm whose statistics cross ranks, half of its channels after the other:
//
//   statistics of A   statistics of B   apply A   apply B
//                  |--- A crosses ---|
//                                    |- B crosses -|
//
// so that what crosses of one half hides behind the other half's work. The numbers are those of all
// channels at once, to the bit.

#include <optional>
#include <utility>

#include "tessera/lower/edges.h"

namespace tessera {

/// The channels of both halves; none where the node does not run so.
std::optional<std::pair<Range, Range>> channel_halves(const PlacedGraph& placed, NodeId node,
                                                      int micro_batch);

}  // namespace tessera
