#include "tessera/augment/class_positions.h"

#include <algorithm>
#include <numeric>

#include "tessera/data/label_strips.h"

namespace tessera {

void ClassPositions::add(int64_t label, int64_t index, uint64_t draw) {
  if (label < 0 || label >= std::ssize(counts_)) return;
  ++counts_[label];
  std::vector<Kept>& kept = kept_[label];
  const Kept entry{draw, index};
  if (kept.size() == kMostPositions) {
    if (!(entry < kept.front())) return;
    std::pop_heap(kept.begin(), kept.end());
    kept.back() = entry;
  } else {
    kept.push_back(entry);
  }
  std::push_heap(kept.begin(), kept.end());
}

Shape ClassPositions::position(int64_t label, const RandomKey& key) const {
  // In the order of draws, which the heap alone does not have.
  std::vector<Kept> kept = kept_[label];
  const auto chosen = kept.begin() + static_cast<std::ptrdiff_t>(key.bits(1) % kept.size());
  std::nth_element(kept.begin(), chosen, kept.end());
  Shape position(shape_.size());
  int64_t rest = chosen->index;
  for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
    position[axis] = rest % shape_[axis];
  return position;
}

std::optional<Shape> ClassPositions::of_foreground(const RandomKey& key) const {
  const int64_t total =
      counts_.empty() ? 0 : std::accumulate(counts_.begin() + 1, counts_.end(), int64_t{0});
  if (total == 0) return std::nullopt;
  auto rest = static_cast<int64_t>(key.bits(0) % static_cast<uint64_t>(total));
  int64_t label = 1;
  while (rest >= counts_[label]) rest -= counts_[label++];
  return position(label, key);
}

std::optional<Shape> ClassPositions::of_any_class(const RandomKey& key) const {
  std::vector<int64_t> present;
  for (int64_t label = 0; label < std::ssize(counts_); ++label)
    if (counts_[label] > 0) present.push_back(label);
  if (present.empty()) return std::nullopt;
  return position(present[key.bits(0) % present.size()], key);
}

ClassPositions find_classes(const Dataset& data, int64_t sample, const RandomKey& key) {
  const Shape shape = data.target_shape_of(sample);
  ClassPositions positions(shape, data.num_classes());
  const int64_t row = Box::whole(shape).volume() / shape[0];
  std::vector<RandomKey> keys;
  for (int64_t label = 0; label < data.num_classes(); ++label)
    keys.push_back(key.with(static_cast<uint64_t>(label)));
  for_each_label_strip(data, sample, [&](const LabelStrip& strip) {
    const int64_t first = strip.box[0].begin * row;
    const int64_t* labels = strip.labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < strip.labels.numel(); ++i)
      if (labels[i] >= 0 && labels[i] < std::ssize(keys))
        positions.add(labels[i], first + i, keys[labels[i]].bits(static_cast<uint64_t>(first + i)));
  });
  return positions;
}

}  // namespace tessera
