#pragma once
// A multigrid solve of a chain of layers as data: no graph, no tensors. The chain takes a state
// from layer to layer; each step of a coarser level stands for an interval of steps of the level
// below it, and is one step of the interval's first layer, as large as the layers that it stands
// for. Two intervals of four layers, and where their C points (c) lie:
//
//     level 0   c---.---.---.---c---.---.---.---|     points; a step is between two
//     level 1   c---------------c---------------|
//
// A V-cycle relaxes the states of a level, so that all points of an interval follow from its C
// point (F), once more from the C points that the last intervals have reached (CF), and corrects
// the C points on the next level. There, a step from w is
//
//     arrived + (step(w) - step(v))     v: the C point, arrived: where its interval led
//
// which is the full approximation scheme. Where w is v, to the bit, nothing is added to `arrived`,
// to the bit: a state that is exact stays exact. Operations that are there already are not listed
// twice, so that the list shows it, too: after enough V-cycles it is the chain itself.
//
// The gradient of the state runs through the same chain from its last layer to its first, solved
// by the same kind of list.
//
// Example, 8 layers in intervals of 4, one V-cycle: the state before layer 4 is
//   const Cycle cycle = make_cycle({.coarsening = 4, .relaxations = 0}, 8, 1,
//   SweepOrder::kForward); cycle.starts[1];   // the value there

#include <string>
#include <vector>

#include "tessera/geometry/range.h"
#include "tessera/plan/multigrid.h"

namespace tessera {

/// In which order a solve goes through the layers.
enum class SweepOrder {
  kForward,   // states
  kBackward,  // their gradients
};

struct CycleOp {
  enum class Kind {
    kGiven,    // the state before the first layer of the order
    kStep,     // a step from `from`
    kCorrect,  // from + (now - then)
  };
  Kind kind = Kind::kGiven;
  int level = 0;
  Range layers;  // that the step stands for; it is one of the first of them. Of a correction: those
                 // of `now`
  int from = -1, now = -1, then = -1;  // values
  bool operator==(const CycleOp&) const = default;
};

/// A value is named by the operation that makes it.
struct Cycle {
  std::vector<CycleOp> ops;      // in an order in which they can run; the first is what is given
  std::vector<Range> intervals;  // of layers, ascending; one, where there is no coarser level
  std::vector<int> starts;  // per interval: the state that it starts from, in the solve's order
};

/// `iterations` V-cycles. Levels with fewer than two steps are left out.
Cycle make_cycle(const Multigrid& multigrid, int num_layers, int iterations, SweepOrder order);

/// As papers draw it: a line for each of `slices` workers, a cell for each step that it computes,
/// with its level; the last sweep, over its own layers, is drawn as =. A dot is a worker that
/// waits.
///   0 | 0000====...
std::string draw_cycle(const Cycle& cycle, int slices);

/// Steps, one after the other, of the worker that ends last: what a drawing is wide.
int length_of_cycle(const Cycle& cycle, int slices);

/// The layers of each of `slices` workers: whole intervals, cut evenly.
std::vector<Range> layer_slices(const Cycle& cycle, int slices);

}  // namespace tessera
