#include "tessera/inspect/graph_layout.h"

#include <algorithm>
#include <cmath>

#include "tessera/inspect/edge_routes.h"
#include "tessera/inspect/layout_blocks.h"
#include "tessera/inspect/spread_out.h"

namespace tessera {
namespace {

/// Twofold coarsenings from the image; `otherwise` for a value that has no space, or just one pixel
/// (it belongs to the place where it was computed).
double level_of(const ValueType& type, double otherwise) {
  for (const Axis& axis : type.axes)
    if (axis.kind == AxisKind::kSpatial && axis.size > 1)
      return std::log2(static_cast<double>(axis.stride.num) / static_cast<double>(axis.stride.den));
  return otherwise;
}

class Placer {
 public:
  Placer(const Graph& graph, const LayoutSizes& sizes)
      : graph_(graph), sizes_(sizes), blocks_(form_blocks(graph)), levels_(blocks_.list.size()) {
    last_reader_row_.resize(blocks_.list.size());
    for (const BlockEdge& edge : blocks_.edges) {
      int& last = last_reader_row_[edge.from];
      last = std::max(last, blocks_.list[edge.to].row);
    }
    double y = 0;
    for (const std::vector<int>& row : blocks_.rows) {
      double height = 0;
      for (int block : row) {
        blocks_.list[block].rect = {0, y, sizes_.box_width, height_of(blocks_.list[block])};
        height = std::max(height, blocks_.list[block].rect.height);
      }
      place_row(row);
      y += height + sizes_.row_gap;
    }
  }

  const Blocks& blocks() const { return blocks_; }

 private:
  double height_of(const Block& block) const {
    if (block.nodes.empty()) return sizes_.box_height;
    const auto num_light = static_cast<double>(block.nodes.size() - 1);
    return sizes_.box_height + num_light * (sizes_.light_height + sizes_.stack_gap);
  }

  /// Below what it reads, a step to the side where the resolution changes. Inputs of the graph
  /// that come late (labels) do not pull.
  double wanted_x(int block) {
    double sum = 0, level = 0;
    int count = 0;
    for (const bool with_inputs : {false, true}) {
      for (int edge : blocks_.edges_to[block]) {
        const int from = blocks_.edges[edge].from;
        if (!with_inputs && blocks_.list[from].nodes.empty()) continue;
        const double own = level_of(graph_.type(blocks_.list[block].output), levels_[from]);
        constexpr double kMaxSteps = 2;
        const double steps = std::clamp(own - levels_[from], -kMaxSteps, kMaxSteps);
        sum += blocks_.list[from].rect.x + steps * sizes_.indent;
        level += own;
        ++count;
      }
      if (count > 0) break;
    }
    levels_[block] = count > 0 ? level / count : 0;
    return count > 0 ? sum / count : 0;
  }

  void place_row(const std::vector<int>& row) {
    std::vector<std::pair<double, int>> wanted;
    std::vector<int> inputs;
    for (int block : row) {
      if (blocks_.list[block].nodes.empty())
        inputs.push_back(block);
      else
        wanted.emplace_back(wanted_x(block), block);
    }
    // Where several want the same place, the one that waits longest for its reader stands on the
    // left.
    std::ranges::stable_sort(wanted, {}, [&](const std::pair<double, int>& entry) {
      return std::pair(entry.first, -last_reader_row_[entry.second]);
    });
    std::vector<double> xs;
    for (const auto& [x, block] : wanted) xs.push_back(x);
    const double spacing = sizes_.box_width + sizes_.column_gap;
    xs = spread_out(xs, spacing);
    for (size_t i = 0; i < xs.size(); ++i) blocks_.list[wanted[i].second].rect.x = xs[i];
    double next = xs.empty() ? 0 : xs.back() + spacing;
    for (int block : inputs) {
      blocks_.list[block].rect.x = next;
      levels_[block] = level_of(graph_.type(blocks_.list[block].output), 0);
      next += spacing;
    }
  }

  const Graph& graph_;
  const LayoutSizes& sizes_;
  Blocks blocks_;
  std::vector<double> levels_;        // by block
  std::vector<int> last_reader_row_;  // by block
};

void shift(double dx, double dy, GraphLayout* layout) {
  for (std::vector<Rect>* rects : {&layout->nodes, &layout->inputs})
    for (Rect& rect : *rects) rect = {rect.x + dx, rect.y + dy, rect.width, rect.height};
  for (EdgePath& edge : layout->edges)
    for (Point& point : edge.points) point = {point.x + dx, point.y + dy};
}

/// Moves everything to begin at (0, 0), and measures it.
void frame(GraphLayout* layout) {
  double left = 0, right = 0, bottom = 0;
  bool is_first = true;
  const auto include = [&](double x_min, double x_max, double y_max) {
    left = is_first ? x_min : std::min(left, x_min);
    right = is_first ? x_max : std::max(right, x_max);
    bottom = std::max(bottom, y_max);
    is_first = false;
  };
  for (const std::vector<Rect>* rects : {&layout->nodes, &layout->inputs})
    for (const Rect& rect : *rects) include(rect.x, rect.right(), rect.bottom());
  for (const EdgePath& edge : layout->edges)
    for (const Point& point : edge.points) include(point.x, point.x, point.y);
  shift(-left, 0, layout);
  layout->width = right - left;
  layout->height = bottom;
}

}  // namespace

GraphLayout layout_graph(const Graph& graph, const LayoutSizes& sizes) {
  const Placer placer(graph, sizes);
  GraphLayout layout;
  layout.nodes.resize(graph.nodes().size());
  layout.is_light.resize(graph.nodes().size());
  for (const Block& block : placer.blocks().list) {
    if (block.nodes.empty()) layout.inputs.push_back(block.rect);
    Rect rect = block.rect;
    for (size_t i = 0; i < block.nodes.size(); ++i) {
      rect.height = i == 0 ? sizes.box_height : sizes.light_height;
      layout.nodes[block.nodes[i]] = rect;
      layout.is_light[block.nodes[i]] = i > 0;
      rect.y += rect.height + sizes.stack_gap;
    }
  }
  layout.edges = route_edges(placer.blocks(), sizes);
  frame(&layout);
  return layout;
}

}  // namespace tessera
