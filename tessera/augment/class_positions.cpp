#include "tessera/augment/class_positions.h"

#include <algorithm>
#include <utility>

#include "tessera/data/label_strips.h"

namespace tessera {

namespace {

constexpr size_t kMostPositions = 1024;  // of a class

/// The positions of one class that are kept so far.
class DrawnPositions {
 public:
  void add(uint64_t draw, int64_t index) {
    ++count_;
    const Kept entry{draw, index};
    if (kept_.size() == kMostPositions) {
      if (!(entry < kept_.front())) return;
      std::pop_heap(kept_.begin(), kept_.end());
      kept_.back() = entry;
    } else {
      kept_.push_back(entry);
    }
    std::push_heap(kept_.begin(), kept_.end());
  }

  /// In the order of their draws, which is the same whatever was read first.
  ClassPositions::OfClass taken() && {
    std::sort_heap(kept_.begin(), kept_.end());
    ClassPositions::OfClass made{count_};
    for (const Kept& each : kept_) made.indices.push_back(each.second);
    return made;
  }

 private:
  using Kept = std::pair<uint64_t, int64_t>;  // draw, index
  int64_t count_ = 0;
  std::vector<Kept> kept_;  // a heap with the largest draw first
};

}  // namespace

Shape ClassPositions::position(int64_t label, const RandomKey& key) const {
  const std::vector<int64_t>& indices = classes_[label].indices;
  Shape position(shape_.size());
  int64_t rest = indices[key.bits(1) % indices.size()];
  for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
    position[axis] = rest % shape_[axis];
  return position;
}

std::optional<Shape> ClassPositions::of_foreground(const RandomKey& key) const {
  int64_t total = 0;
  for (size_t label = 1; label < classes_.size(); ++label) total += classes_[label].count;
  if (total == 0) return std::nullopt;
  auto rest = static_cast<int64_t>(key.bits(0) % static_cast<uint64_t>(total));
  int64_t label = 1;
  while (rest >= classes_[label].count) rest -= classes_[label++].count;
  return position(label, key);
}

std::optional<Shape> ClassPositions::of_any_class(const RandomKey& key) const {
  std::vector<int64_t> present;
  for (int64_t label = 0; label < std::ssize(classes_); ++label)
    if (classes_[label].count > 0) present.push_back(label);
  if (present.empty()) return std::nullopt;
  return position(present[key.bits(0) % present.size()], key);
}

ClassPositions find_classes(const Dataset& data, int64_t sample, const RandomKey& key) {
  const Shape shape = data.target_shape_of(sample);
  std::vector<DrawnPositions> drawn(static_cast<size_t>(data.num_classes()));
  const int64_t row = Box::whole(shape).volume() / shape[0];
  std::vector<RandomKey> keys;
  for (size_t label = 0; label < drawn.size(); ++label) keys.push_back(key.with(label));
  for_each_label_strip(data, sample, [&](const LabelStrip& strip) {
    const int64_t first = strip.box[0].begin * row;
    const int64_t* labels = strip.labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < strip.labels.numel(); ++i)
      if (labels[i] >= 0 && labels[i] < std::ssize(drawn))
        drawn[labels[i]].add(keys[labels[i]].bits(static_cast<uint64_t>(first + i)), first + i);
  });
  std::vector<ClassPositions::OfClass> classes;
  for (DrawnPositions& of_class : drawn) classes.push_back(std::move(of_class).taken());
  return {shape, std::move(classes)};
}

}  // namespace tessera
