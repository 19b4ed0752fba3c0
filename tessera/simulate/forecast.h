#pragma once
// What every rank of a step will hold and send. A small world is lowered whole, and its programs
// are proved together; of a large one, one rank of each class is lowered (lower/rank_classes.h).

#include <vector>

#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"

namespace tessera {

struct Forecast {
  std::vector<RankForecast> ranks;
  std::vector<std::vector<int>> classes;  // ranks that are alike; in a small world each by itself
};

Forecast forecast(const Lowering& lowering, at::ScalarType real);

}  // namespace tessera
