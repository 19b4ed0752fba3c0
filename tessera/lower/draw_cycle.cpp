#include <algorithm>

#include <fmt/format.h>

#include "tessera/geometry/split.h"
#include "tessera/lower/multigrid_cycle.h"

// A cycle in time: every worker runs the steps of its layers in the order of the list, each as soon
// as what it reads is there; a step takes one unit of time, a correction and a message none.

namespace tessera {
namespace {

struct Cell {
  int worker = 0;
  int begin = 0;
  char mark = '.';
};

int worker_of(const std::vector<Range>& slices, int64_t layer) {
  const auto found =
      std::find_if(slices.begin(), slices.end(), [&](const Range& s) { return s.contains(layer); });
  return static_cast<int>(found - slices.begin());
}

/// All steps, the last sweep over every worker's own layers included.
std::vector<Cell> in_time(const Cycle& cycle, int num_slices) {
  const std::vector<Range> slices = layer_slices(cycle, num_slices);
  std::vector<int> ready(cycle.ops.size(), 0), free(num_slices, 0);
  std::vector<Cell> cells;
  const auto run = [&](int worker, int from, char mark) {
    cells.push_back({worker, std::max(free[worker], from), mark});
    return free[worker] = cells.back().begin + 1;
  };
  for (size_t i = 1; i < cycle.ops.size(); ++i) {
    const CycleOp& op = cycle.ops[i];
    for (int read : {op.from, op.now, op.then})
      if (read >= 0) ready[i] = std::max(ready[i], ready[read]);
    if (op.kind == CycleOp::Kind::kStep)
      ready[i] = run(worker_of(slices, op.layers.begin), ready[i],
                     static_cast<char>('0' + std::min(op.level, 9)));
  }
  for (size_t j = 0; j < cycle.intervals.size(); ++j)
    for (int64_t layer = cycle.intervals[j].begin; layer < cycle.intervals[j].end; ++layer)
      run(worker_of(slices, layer), ready[cycle.starts[j]], '=');
  return cells;
}

int end_of(const std::vector<Cell>& cells) {
  int end = 0;
  for (const Cell& cell : cells) end = std::max(end, cell.begin + 1);
  return end;
}

}  // namespace

std::vector<Range> layer_slices(const Cycle& cycle, int slices) {
  std::vector<Range> layers;
  for (int i = 0; i < slices; ++i) {
    const Range own = split(std::ssize(cycle.intervals), slices, i);
    layers.push_back(
        own.empty() ? Range{}
                    : Range{cycle.intervals[own.begin].begin, cycle.intervals[own.end - 1].end});
  }
  return layers;
}

std::string draw_cycle(const Cycle& cycle, int slices) {
  const std::vector<Cell> cells = in_time(cycle, slices);
  std::vector<std::string> lines(slices, std::string(end_of(cells), '.'));
  for (const Cell& cell : cells) lines[cell.worker][cell.begin] = cell.mark;
  std::string drawing;
  for (int i = 0; i < slices; ++i) drawing += fmt::format("{} | {}\n", i, lines[i]);
  return drawing;
}

int length_of_cycle(const Cycle& cycle, int slices) { return end_of(in_time(cycle, slices)); }

}  // namespace tessera
