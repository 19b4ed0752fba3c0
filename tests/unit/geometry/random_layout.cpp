#include "tests/unit/geometry/random_layout.h"

#include <algorithm>

#include "tessera/geometry/split.h"

namespace tessera {
namespace {

std::vector<Range> random_parts(Random& random, int64_t size, int64_t num_parts) {
  std::vector<Range> parts;
  if (random.coin()) {
    const int64_t align = random.between(1, 4);
    for (int64_t part = 0; part < num_parts; ++part)
      parts.push_back(split(size, num_parts, part, align));
    return parts;
  }
  std::vector<int64_t> cuts{0, size};
  for (int64_t cut = 1; cut < num_parts; ++cut) cuts.push_back(random.between(0, size));
  std::ranges::sort(cuts);
  for (int64_t part = 0; part < num_parts; ++part) parts.push_back({cuts[part], cuts[part + 1]});
  return parts;
}

}  // namespace

Shape random_shape(Random& random, int num_axes, int64_t max_volume) {
  Shape shape;
  int64_t left = max_volume;
  for (int axis = 0; axis < num_axes; ++axis) {
    shape.push_back(random.between(1, std::min<int64_t>(left, num_axes < 3 ? 24 : 7)));
    left = std::max<int64_t>(1, left / shape.back());
  }
  std::ranges::shuffle(shape, random.engine());
  return shape;
}

Box random_box(Random& random, const Shape& shape, int64_t margin) {
  Box box;
  for (int64_t size : shape) {
    const int64_t begin = random.between(-margin, size + margin - 1);
    box.push_back({begin, random.between(begin + (random.between(0, 9) ? 1 : 0), size + margin)});
  }
  return box;
}

std::vector<Piece> random_grid(Random& random, const Shape& shape, int num_ranks) {
  std::vector<Piece> pieces{{Box{}, 0}};
  for (int64_t size : shape) {
    const std::vector<Range> parts = random_parts(random, size, random.between(1, 3));
    std::vector<Piece> finer;
    for (const Piece& piece : pieces)
      for (const Range& part : parts) {
        finer.push_back(piece);
        finer.back().box.push_back(part);
      }
    pieces = std::move(finer);
  }
  for (Piece& piece : pieces) piece.rank = static_cast<int>(random.between(0, num_ranks - 1));
  return pieces;
}

std::vector<Piece> random_bisection(Random& random, const Shape& shape, int num_ranks) {
  std::vector<Piece> pieces{{Box::whole(shape), 0}};
  const int64_t num_cuts = shape.empty() ? 0 : random.between(0, 12);
  for (int64_t cut = 0; cut < num_cuts; ++cut) {
    const int64_t which = random.between(0, static_cast<int64_t>(pieces.size()) - 1);
    const int axis = static_cast<int>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
    Piece high = pieces[which];
    const int64_t at = random.between(high.box[axis].begin, high.box[axis].end);
    pieces[which].box[axis].end = at;
    high.box[axis].begin = at;
    pieces.push_back(high);
  }
  for (Piece& piece : pieces) piece.rank = static_cast<int>(random.between(0, num_ranks - 1));
  return pieces;
}

Layout random_layout(Random& random, const Shape& shape, int num_ranks) {
  std::vector<Piece> pieces = random.coin() ? random_grid(random, shape, num_ranks)
                                            : random_bisection(random, shape, num_ranks);
  for (int64_t extra = shape.empty() ? 0 : random.between(0, 2); extra > 0; --extra) {
    Box nothing = Box::whole(shape);
    nothing[0] = {shape[0], shape[0]};
    pieces.push_back({nothing, static_cast<int>(random.between(0, num_ranks - 1))});
  }
  if (random.coin()) std::ranges::shuffle(pieces, random.engine());
  return Layout(shape, std::move(pieces));
}

bool holds(const Box& box, const Shape& position) {
  for (int axis = 0; axis < box.num_axes(); ++axis)
    if (!box[axis].contains(position[axis])) return false;
  return true;
}

}  // namespace tessera
