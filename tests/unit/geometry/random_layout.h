#pragma once
// Seeded random cases for the property tests: shapes, boxes and the kinds of piece lists that
// layouts are made of. The same seed gives the same case on every machine.

#include <cstdint>
#include <random>

#include "tessera/geometry/layout.h"

namespace tessera {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// A number in [low, high], both included. (The standard distributions differ among libraries.)
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return between(0, 1) == 1; }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// A shape of at most `max_volume` elements or thereabouts, no size zero.
Shape random_shape(Random& random, int num_axes, int64_t max_volume);

/// A box that may be empty, and leaves the shape by up to `margin` on each side.
Box random_box(Random& random, const Shape& shape, int64_t margin);

/// A grid of uneven parts, some of them empty: the layouts that plans make.
std::vector<Piece> random_grid(Random& random, const Shape& shape, int num_ranks);

/// Boxes cut again and again at random places: no grid has their boundaries.
std::vector<Piece> random_bisection(Random& random, const Shape& shape, int num_ranks);

/// One of the above with shuffled pieces and a few empty ones among them.
Layout random_layout(Random& random, const Shape& shape, int num_ranks);

/// Calls `visit(Shape position)` for every position in `box`.
template <class Visit>
void for_each_position(const Box& box, Visit visit, Shape position = {}) {
  const int axis = static_cast<int>(position.size());
  if (axis == box.num_axes()) return visit(position);
  position.push_back(0);
  for (int64_t index = box[axis].begin; index < box[axis].end; ++index) {
    position.back() = index;
    for_each_position(box, visit, position);
  }
}

/// Whether `box` holds the position.
bool holds(const Box& box, const Shape& position);

}  // namespace tessera
