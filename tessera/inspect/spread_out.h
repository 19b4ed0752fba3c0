#pragma once
// Places for things in a row that want to be somewhere and must not come too close.

#include <vector>

namespace tessera {

/// The places nearest to the wanted ones (least squares) with at least `spacing` between
/// neighbours. `wanted` is ascending. With the spacing taken off, this is isotonic regression:
/// neighbours that are out of order are pooled at their mean.
std::vector<double> spread_out(const std::vector<double>& wanted, double spacing);

}  // namespace tessera
