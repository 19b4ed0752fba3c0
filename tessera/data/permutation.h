#pragma once
// A random order of 0 .. count-1 without a table: the element at any place is a function of (key,
// place), by a Feistel network over the next power of two, walked until it lands inside the count.
// So an order of millions costs no memory, and ranks need not agree on it.
//
// Example:
//   permuted(RandomKey(seed).with("shuffle").with(epoch), place, num_samples);

#include "tessera/base/random.h"

namespace tessera {

/// The element at `place` of the order; both in [0, count).
int64_t permuted(const RandomKey& key, int64_t place, int64_t count);

}  // namespace tessera
