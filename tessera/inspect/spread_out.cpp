#include "tessera/inspect/spread_out.h"

namespace tessera {
namespace {

struct Pool {
  double sum = 0;
  int count = 0;
  double mean() const { return sum / count; }
};

}  // namespace

std::vector<double> spread_out(const std::vector<double>& wanted, double spacing) {
  std::vector<Pool> pools;
  for (size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i] - static_cast<double>(i) * spacing, 1});
    while (pools.size() > 1 && pools.back().mean() < pools[pools.size() - 2].mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> places;
  for (const Pool& pool : pools)
    for (int i = 0; i < pool.count; ++i)
      places.push_back(pool.mean() + static_cast<double>(places.size()) * spacing);
  return places;
}

}  // namespace tessera
