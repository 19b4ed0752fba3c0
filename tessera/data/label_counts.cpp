#include "tessera/data/label_counts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <thread>

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
  const int64_t workers = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, strips.size()));
  std::vector<std::vector<int64_t>> counts(workers, std::vector<int64_t>(num_classes, 0));
  std::vector<std::exception_ptr> failures(workers);
  std::atomic<int64_t> next{0};
  const auto work = [&](int64_t worker) {
    try {
      for (int64_t i = next++; i < strips.size(); i = next++)
        add_counts(strips.load(i).labels, &counts[worker]);
    } catch (...) {
      failures[worker] = std::current_exception();
      next = strips.size();  // the others need not go on
    }
  };
  std::vector<std::thread> others;
  for (int64_t worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
  work(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (int64_t worker = 1; worker < workers; ++worker)
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
