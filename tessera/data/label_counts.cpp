#include "tessera/data/label_counts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <thread>

namespace tessera {
namespace {

constexpr int64_t kStripElements = 1 << 20;

/// A sample's labels as boxes of whole rows, none with many more than kStripElements labels (but
/// for a row that has them).
std::vector<Box> strips_of(const Shape& shape) {
  const Box whole = Box::whole(shape);
  if (shape.empty() || whole.empty()) return {whole};
  const int64_t row = whole.volume() / shape[0];
  const int64_t height = std::max<int64_t>(1, kStripElements / row);
  std::vector<Box> strips;
  for (int64_t begin = 0; begin < shape[0]; begin += height) {
    Box strip = whole;
    strip[0] = {begin, std::min(begin + height, shape[0])};
    strips.push_back(strip);
  }
  return strips;
}

void add_counts(const at::Tensor& labels, std::vector<int64_t>* counts) {
  const auto num_classes = std::ssize(*counts);
  const int64_t* data = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (data[i] >= 0 && data[i] < num_classes) ++(*counts)[data[i]];
}

}  // namespace

std::vector<int64_t> count_labels(const Dataset& data, int64_t num_classes, int threads) {
  const std::vector<Box> strips = strips_of(data.target_shape());
  const int64_t num_strips = data.size() * std::ssize(strips);
  const int64_t workers = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, num_strips));
  std::vector<std::vector<int64_t>> counts(workers, std::vector<int64_t>(num_classes, 0));
  std::vector<std::exception_ptr> failures(workers);
  std::atomic<int64_t> next{0};
  const auto work = [&](int64_t worker) {
    try {
      for (int64_t i = next++; i < num_strips; i = next++) {
        const Box& strip = strips[i % std::ssize(strips)];
        const at::Tensor labels = at::empty(strip.shape(), at::kLong);
        data.load_target(i / std::ssize(strips), strip, labels);
        add_counts(labels, &counts[worker]);
      }
    } catch (...) {
      failures[worker] = std::current_exception();
      next = num_strips;  // the others need not go on
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
