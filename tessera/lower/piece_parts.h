#pragma once
// A piece in two: what crosses to or from other ranks, and the rest, each as disjoint boxes.
//
//     +-----------------+   piece of rank 0 of two, side by side, read by a 3x3 convolution
//     | . . . . . . . # |   #  crosses: rank 1 reads it in forward, and adds to its gradient in
//     | . . . . . . . # |      backward
//     | . . . . . . . # |   .  the rest
//     +-----------------+
//
// In forward what crosses is computed first and travels while the rest is computed; in backward
// what reads the gradient begins with the rest, while the additions of others travel. So one part
// of the work on a piece hides what the other part needs.

#include <vector>

#include "tessera/lower/rank_view.h"

namespace tessera {

/// The part of `box` outside `other`, as disjoint boxes.
std::vector<Box> difference(Box box, const Box& other);

struct PieceParts {
  std::vector<Box> crossing;
  std::vector<Box> rest;
};

/// `crossing` may overlap. A piece of which nothing is left crosses whole, in one box.
PieceParts split_piece(const Box& piece, std::vector<Box> crossing);

/// The parts of `piece` of a value that readers on other ranks need, with all channels: no operator
/// is asked for some of them. They may overlap.
std::vector<Box> boxes_that_cross(const PlacedGraph& placed, const RankView& here, ValueId value,
                                  int piece, int micro_batch);
/// Adds those of the value's gradient, that other ranks read as a halo.
void add_boxes_of_gradient_that_cross(const PlacedGraph& placed, const RankView& here,
                                      ValueId value, int piece, int micro_batch,
                                      std::vector<Box>* boxes);

/// Whether it is worth running the node part by part: a kernel that reads views of any kind costs
/// what its pixels cost, a product wants its operands whole.
bool runs_in_parts(const Node& node);

/// Whether each pixel of the output reads the pixel at its place alone: an input's box is the
/// output's. Known from the ends of the axes.
bool reads_pixel_by_pixel(const Node& node);

}  // namespace tessera
