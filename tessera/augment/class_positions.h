#pragma once
// Where the classes lie in the labels of one sample: how many pixels each has, and some of their
// positions, drawn once. Those that are kept are the ones with the smallest random numbers, which
// are functions of (key, class, position): any order of reading keeps the same ones, and no more
// than 1024 of a class are held.
//
// Example:
//   const ClassPositions positions = find_classes(data, sample, key);
//   std::optional<Shape> voxel = positions.of_foreground(key.with("crop"));

#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/dataset.h"

namespace tessera {

class ClassPositions {
 public:
  /// How many pixels a class has, and indices of some of them in an array of labels.
  struct OfClass {
    int64_t count = 0;
    std::vector<int64_t> indices = {};
  };
  ClassPositions(Shape shape, std::vector<OfClass> classes)
      : shape_(std::move(shape)), classes_(std::move(classes)) {}

  /// A position of any class but 0, each pixel as likely as any other; none where there is none.
  std::optional<Shape> of_foreground(const RandomKey& key) const;
  /// A position of one of the classes that occur, each class as likely as any other.
  std::optional<Shape> of_any_class(const RandomKey& key) const;

 private:
  Shape position(int64_t label, const RandomKey& key) const;

  Shape shape_;
  std::vector<OfClass> classes_;
};

/// Reads every label of the sample once, in strips. The data set has labels per pixel.
ClassPositions find_classes(const Dataset& data, int64_t sample, const RandomKey& key);

}  // namespace tessera
