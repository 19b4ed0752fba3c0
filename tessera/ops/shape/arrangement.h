#pragma once
// Values whose axes are taken apart and put together in another order: channel shuffles, features
// as an image, tokens, heads, windows. Positions along an axis are numbers of several digits
// (geometry/digits.h), and each digit has a letter: an axis of 3 x 4 channels has the letters g and
// c, the output may have them as c and g. Letters that the output does not have are summed over.
// With two inputs, letters that both have are multiplied along each other: products of matrices
// whose rows and columns are pixels, channels, or parts of them.
//
// A piece of the output reads from the inputs what its letters say; letters that are summed over
// are read whole. So attention between all pixels needs all of them on every rank, and attention
// within windows the windows that a piece touches.
//
// Example, a channel shuffle with 3 groups of an image of 12 channels:
//   rearrange(graph, x, "shuffle",
//             {.sizes = {n, 3, 4, h, w}, .from = {{{0}, {1, 2}, {3}, {4}}}, .to = {{0}, {2, 1},
//             {3}, {4}}});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// The letters of each axis; those of one axis from the one that counts most. None: an axis of one.
using Lettering = std::vector<std::vector<int>>;

struct Arrangement {
  std::vector<int64_t> sizes;  // of each letter
  std::vector<Lettering>
      from;      // of each input; the first axis is the batch, with a letter of its own
  Lettering to;  // of the output; its first axis is the batch, its second the channels
};

/// Throws InvalidInput where the letters do not fit the value.
ValueId rearrange(Graph& graph, ValueId x, const std::string& name, const Arrangement& arrangement);

/// The product of two values, summed over the letters that the output does not have.
ValueId contract(Graph& graph, ValueId a, ValueId b, const std::string& name,
                 const Arrangement& arrangement);

}  // namespace tessera
