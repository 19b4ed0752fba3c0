#include "tessera/data/label_counts.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "tessera/data/in_parallel.h"
#include "tessera/data/label_strips.h"

namespace tessera {
namespace {

void add_counts(const at::Tensor& labels, std::vector<int64_t>* counts) {
  const auto num_classes = std::ssize(*counts);
  const int64_t* data = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (data[i] >= 0 && data[i] < num_classes) ++(*counts)[data[i]];
}

}  // namespace

std::vector<int64_t> count_labels(const Dataset& data, int64_t num_classes, int threads) {
  const LabelStrips strips(data, data.size());
  std::vector<std::vector<int64_t>> counts(std::max(threads, 1),
                                           std::vector<int64_t>(num_classes, 0));
  in_parallel(strips.size(), threads, [&](int64_t index, int64_t worker) {
    add_counts(strips.load(index).labels, &counts[worker]);
  });
  for (size_t worker = 1; worker < counts.size(); ++worker)
    std::ranges::transform(counts[0], counts[worker], counts[0].begin(), std::plus<>());
  return counts[0];
}

std::vector<double> balanced_weights(const std::vector<int64_t>& counts) {
  const auto labels =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto present =
      static_cast<double>(std::ranges::count_if(counts, [](int64_t count) { return count > 0; }));
  std::vector<double> weights;
  for (int64_t count : counts)
    weights.push_back(count > 0 ? labels / (present * static_cast<double>(count)) : 1);
  return weights;
}

}  // namespace tessera
