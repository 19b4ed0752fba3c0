#include "tessera/lower/piece_parts.h"

#include <algorithm>

namespace tessera {

std::vector<Box> difference(Box box, const Box& other) {
  std::vector<Box> parts;
  for (int axis = 0; axis < box.num_axes(); ++axis) {
    const Range inside = intersect(box[axis], other[axis]);
    if (inside.empty()) {
      parts.push_back(box);
      return parts;
    }
    for (const Range& range :
         {Range{box[axis].begin, inside.begin}, Range{inside.end, box[axis].end}})
      if (!range.empty()) {
        parts.push_back(box);
        parts.back()[axis] = range;
      }
    box[axis] = inside;
  }
  return parts;
}

/// The largest first, which hold the others' corners: fewer parts.
PieceParts split_piece(const Box& piece, std::vector<Box> crossing) {
  std::stable_sort(crossing.begin(), crossing.end(),
                   [](const Box& a, const Box& b) { return a.volume() > b.volume(); });
  PieceParts parts{{}, {piece}};
  for (const Box& box : crossing) {
    std::vector<Box> rest;
    for (const Box& part : parts.rest) {
      const Box taken = intersect(part, box);
      if (taken.empty()) {
        rest.push_back(part);
        continue;
      }
      parts.crossing.push_back(taken);
      const std::vector<Box> left = difference(part, taken);
      rest.insert(rest.end(), left.begin(), left.end());
    }
    parts.rest = std::move(rest);
  }
  if (parts.rest.empty()) parts.crossing = {piece};
  return parts;
}

namespace {

void add_boxes_that_cross(const PlacedGraph& placed, const RankView& here, ValueId value, int piece,
                          std::span<const Move> moves, std::vector<Box>* boxes) {
  const ValueType& type = placed.graph.type(value);
  const Box& whole = placed.values[value].layout.piece(piece).box;
  // Readers may want some channels alone (a transposed image), but operators see them together.
  const auto with_all_channels = [&](Box box) {
    for (int axis = 0; axis < box.num_axes(); ++axis)
      if (type.axes[axis].kind != AxisKind::kBatch && type.axes[axis].kind != AxisKind::kSpatial)
        box[axis] = whole[axis];
    return box;
  };
  for (const Move& move : moves)
    if (move.from == here.rank() && move.to != here.rank() && move.source_piece == piece)
      boxes->push_back(with_all_channels(move.box));
}

}  // namespace

std::vector<Box> boxes_that_cross(const PlacedGraph& placed, const RankView& here, ValueId value,
                                  int piece, int m) {
  std::vector<Box> boxes;
  for (int group = 0; group < std::ssize(placed.values[value].groups); ++group)
    add_boxes_that_cross(placed, here, value, piece, here.moves(value, group, m), &boxes);
  return boxes;
}

void add_boxes_of_gradient_that_cross(const PlacedGraph& placed, const RankView& here,
                                      ValueId value, int piece, int m, std::vector<Box>* boxes) {
  add_boxes_that_cross(placed, here, value, piece, here.gradient_moves(value, m), boxes);
}

bool runs_in_parts(const Node& node) {
  for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
    if (node.op->input_access(input) == InputAccess::kDense) return false;
  return !node.op->is_loss();
}

bool reads_pixel_by_pixel(const Node& node) {
  const Box whole = Box::whole(node.types.output.shape());
  for (int input = 0; input < std::ssize(node.inputs); ++input) {
    if (node.types.inputs[input].shape() != node.types.output.shape()) return false;
    for (int axis = 0; axis < whole.num_axes(); ++axis) {
      if (node.types.output.axes[axis].kind != AxisKind::kSpatial) continue;
      for (const Range& end : {Range{0, 1}, Range{whole[axis].end - 1, whole[axis].end}}) {
        Box slice = whole;
        slice[axis] = end;
        if (!(node.op->needed(input, slice, node.types) == slice)) return false;
      }
    }
  }
  return true;
}

}  // namespace tessera
