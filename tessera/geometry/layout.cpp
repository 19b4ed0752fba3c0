#include "tessera/geometry/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

// A regular grid of n pieces has n cells, but n irregular ones can have (2n)^axes. Beyond this many
// the table costs more than the scans it saves.
constexpr int64_t kMaxCells = 1 << 20;
constexpr int kNobody = -1;

void check_shape(const Shape& shape) {
  if (shape.size() > Box::kMaxAxes)
    throw_error<InvalidInput>("[layout] shape {} has {} axes, at most {} are possible",
                              to_string(shape), shape.size(), int{Box::kMaxAxes});
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; }))
    throw_error<InvalidInput>("[layout] shape {} has a negative size", to_string(shape));
  if (Box::whole(shape).empty()) return;
  int64_t volume = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(volume, size, &volume))
      throw_error<InvalidInput>("[layout] shape {} has more elements than 64 bits can count",
                                to_string(shape));
}

void check_piece(const Piece& piece, int index, const Box& whole) {
  if (piece.rank < 0)
    throw_error<InvalidInput>("[layout] piece {} has rank {}, ranks begin at 0", index, piece.rank);
  if (piece.box.num_axes() != whole.num_axes())
    throw_error<InvalidInput>("[layout] piece {} {} has {} axes, the shape has {}", index,
                              to_string(piece.box), piece.box.num_axes(), whole.num_axes());
  if (!whole.contains(piece.box))
    throw_error<InvalidInput>("[layout] piece {} {} leaves the image {}", index,
                              to_string(piece.box), to_string(whole));
}

[[noreturn]] void throw_overlap(const std::vector<Piece>& pieces, int a, int b) {
  throw_error<InvalidInput>(
      "[layout] pieces {} {} and {} {} overlap; every element needs exactly one owner", a,
      to_string(pieces[a].box), b, to_string(pieces[b].box));
}

/// Sorted distinct boundaries along one axis, those of the image included, so that a gap at its
/// edge is a cell too.
std::vector<int64_t> boundaries(const std::vector<Piece>& pieces, int axis, int64_t size) {
  std::vector<int64_t> cuts{0, size};
  for (const Piece& piece : pieces) {
    if (piece.box.empty()) continue;
    cuts.push_back(piece.box[axis].begin);
    cuts.push_back(piece.box[axis].end);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

/// The number of cells between the cuts, or kMaxCells + 1 when there are more than kMaxCells.
int64_t count_cells(const std::vector<std::vector<int64_t>>& cuts) {
  int64_t cells = 1;
  for (const std::vector<int64_t>& axis_cuts : cuts) {
    cells *= static_cast<int64_t>(axis_cuts.size()) - 1;
    if (cells > kMaxCells) return kMaxCells + 1;
  }
  return cells;
}

/// Which cells along each axis a box inside the image meets.
Box cells_meeting(const std::vector<std::vector<int64_t>>& cuts, const Box& box) {
  Box cells;
  for (int axis = 0; axis < box.num_axes(); ++axis) {
    const std::vector<int64_t>& axis_cuts = cuts[axis];
    const auto first = std::ranges::upper_bound(axis_cuts, box[axis].begin) - 1;
    const auto last = std::ranges::lower_bound(axis_cuts, box[axis].end);
    cells.push_back({first - axis_cuts.begin(), last - axis_cuts.begin()});
  }
  return cells;
}

/// Calls `visit` with the row-major table index of every cell of `cells`, which is not empty.
template <class Visit>
void for_each_cell(const std::vector<std::vector<int64_t>>& cuts, const Box& cells, Visit visit,
                   int axis = 0, int64_t prefix = 0) {
  if (axis == cells.num_axes()) return visit(prefix);
  const int64_t axis_cells = static_cast<int64_t>(cuts[axis].size()) - 1;
  for (int64_t cell = cells[axis].begin; cell < cells[axis].end; ++cell)
    for_each_cell(cuts, cells, visit, axis + 1, prefix * axis_cells + cell);
}

/// The box of the cell with this table index.
Box cell_box(const std::vector<std::vector<int64_t>>& cuts, int64_t index) {
  Box box = Box::whole(Shape(cuts.size(), 0));
  for (int axis = box.num_axes() - 1; axis >= 0; --axis) {
    const int64_t axis_cells = static_cast<int64_t>(cuts[axis].size()) - 1;
    const int64_t cell = index % axis_cells;
    box[axis] = {cuts[axis][cell], cuts[axis][cell + 1]};
    index /= axis_cells;
  }
  return box;
}

/// Throws unless the pieces, all inside the image, are disjoint: a sweep along `axis` that compares
/// a piece only with those not yet passed.
void check_disjoint(const std::vector<Piece>& pieces, int axis) {
  std::vector<int> order;
  for (int index = 0; index < static_cast<int>(pieces.size()); ++index)
    if (!pieces[index].box.empty()) order.push_back(index);
  std::ranges::sort(order, {}, [&](int index) { return pieces[index].box[axis].begin; });
  std::vector<int> open;
  for (int index : order) {
    const Box& box = pieces[index].box;
    std::erase_if(open, [&](int other) { return pieces[other].box[axis].end <= box[axis].begin; });
    for (int other : open)
      if (!intersect(pieces[other].box, box).empty()) throw_overlap(pieces, other, index);
    open.push_back(index);
  }
}

/// Throws unless the pieces cover the image; they are inside it and disjoint.
void check_covering(const std::vector<Piece>& pieces, const Box& whole) {
  int64_t missing = whole.volume();
  for (const Piece& piece : pieces) missing -= piece.box.volume();
  if (missing != 0)
    throw_error<InvalidInput>("[layout] {} of the {} elements of {} have no owner", missing,
                              whole.volume(), to_string(whole));
}

}  // namespace

Layout::Layout(Shape global_shape, std::vector<Piece> pieces) {
  auto parts = std::make_shared<Parts>();
  parts->global_shape = std::move(global_shape);
  parts->pieces = std::move(pieces);
  check_shape(parts->global_shape);
  const Box whole = Box::whole(parts->global_shape);
  for (int index = 0; index < std::ssize(parts->pieces); ++index) {
    const Piece& piece = parts->pieces[index];
    check_piece(piece, index, whole);
    if (piece.box.empty()) continue;
    const size_t rank = static_cast<size_t>(piece.rank);
    if (rank >= parts->pieces_of_rank.size()) parts->pieces_of_rank.resize(rank + 1);
    parts->pieces_of_rank[rank].push_back(index);
  }
  if (!whole.empty()) build_index(parts.get());
  parts_ = std::move(parts);
}

const std::shared_ptr<const Layout::Parts>& Layout::no_parts() {
  static const auto none = std::make_shared<const Parts>();
  return none;
}

void Layout::build_index(Parts* parts) {
  const std::vector<Piece>& pieces = parts->pieces;
  std::vector<std::vector<int64_t>>& cuts = parts->cuts;
  const Box whole = Box::whole(parts->global_shape);
  for (int axis = 0; axis < whole.num_axes(); ++axis)
    cuts.push_back(boundaries(pieces, axis, parts->global_shape[axis]));
  const int64_t num_cells = count_cells(cuts);
  if (num_cells > kMaxCells) {
    const auto finest = std::ranges::max_element(cuts, {}, &std::vector<int64_t>::size);
    check_disjoint(pieces, static_cast<int>(finest - cuts.begin()));
    check_covering(pieces, whole);
    cuts.clear();
    return;
  }
  std::vector<int>& cell_owner = parts->cell_owner;
  cell_owner.assign(num_cells, kNobody);
  for (int index = 0; index < std::ssize(pieces); ++index) {
    if (pieces[index].box.empty()) continue;
    for_each_cell(cuts, cells_meeting(cuts, pieces[index].box), [&](int64_t cell) {
      if (cell_owner[cell] != kNobody) throw_overlap(pieces, cell_owner[cell], index);
      cell_owner[cell] = index;
    });
  }
  const auto gap = std::ranges::find(cell_owner, kNobody);
  if (gap != cell_owner.end())
    throw_error<InvalidInput>("[layout] {} of {} has no owner",
                              to_string(cell_box(cuts, gap - cell_owner.begin())),
                              to_string(whole));
}

const std::vector<int>& Layout::pieces_of(int rank) const {
  static const std::vector<int> none;
  const std::vector<std::vector<int>>& all = parts_->pieces_of_rank;
  return rank >= 0 && rank < std::ssize(all) ? all[rank] : none;
}

std::vector<int> Layout::pieces_meeting(const Box& box) const {
  const Box inside = intersect(box, Box::whole(global_shape()));
  std::vector<int> indices;
  if (inside.empty()) return indices;
  // Many cells of few pieces (or no table at all): the scan is the shorter way.
  const std::vector<int>& cell_owner = parts_->cell_owner;
  const Box cells = cell_owner.empty() ? Box{} : cells_meeting(parts_->cuts, inside);
  if (cell_owner.empty() || cells.volume() > num_pieces()) {
    for (int index = 0; index < num_pieces(); ++index)
      if (!intersect(piece(index).box, inside).empty()) indices.push_back(index);
    return indices;
  }
  for_each_cell(parts_->cuts, cells, [&](int64_t cell) { indices.push_back(cell_owner[cell]); });
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

bool Layout::operator==(const Layout& other) const {
  return parts_ == other.parts_ ||
         (global_shape() == other.global_shape() && pieces() == other.pieces());
}

std::string to_string(const Layout& layout) {
  std::string text = to_string(layout.global_shape()) + " {";
  for (int index = 0; index < layout.num_pieces(); ++index) {
    const Piece& piece = layout.piece(index);
    text += fmt::format("{}{} on {}", index ? ", " : "", to_string(piece.box), piece.rank);
  }
  return text + "}";
}

}  // namespace tessera
