#pragma once
// Where the classes lie in the labels of one sample: how many pixels each has, and some of their
// positions, drawn once. Those that are kept are the ones with the smallest random numbers, which
// are functions of (key, class, position): any order of reading keeps the same ones, and no more
// than kMostPositions of a class are held.
//
// Example:
//   const ClassPositions positions = find_classes(data, sample, key);
//   std::optional<Shape> voxel = positions.of_class(2, key.with("crop"));

#include <optional>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/dataset.h"

namespace tessera {

class ClassPositions {
 public:
  static constexpr size_t kMostPositions = 1024;

  ClassPositions(const Shape& shape, int64_t num_classes)
      : shape_(shape), counts_(num_classes, 0), kept_(num_classes) {}

  /// Labels that are not classes are passed over.
  void add(int64_t label, int64_t index, uint64_t draw);

  const std::vector<int64_t>& counts() const { return counts_; }
  /// A position of any class but 0, each pixel as likely as any other; none where there is none.
  std::optional<Shape> of_foreground(const RandomKey& key) const;
  /// A position of one of the classes that occur, each class as likely as any other.
  std::optional<Shape> of_any_class(const RandomKey& key) const;

 private:
  struct Kept {
    uint64_t draw;
    int64_t index;
    bool operator<(const Kept& other) const {
      return draw != other.draw ? draw < other.draw : index < other.index;
    }
  };
  Shape position(int64_t label, const RandomKey& key) const;

  Shape shape_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<Kept>> kept_;  // of each class, a heap with the largest draw first
};

/// Reads every label of the sample once, in strips. The data set has labels per pixel.
ClassPositions find_classes(const Dataset& data, int64_t sample, const RandomKey& key);

}  // namespace tessera
