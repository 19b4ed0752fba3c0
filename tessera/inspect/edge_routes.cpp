#include "tessera/inspect/edge_routes.h"

#include <algorithm>
#include <numeric>

#include "tessera/inspect/spread_out.h"

namespace tessera {
namespace {

constexpr double kLaneMargin = 20;   // between a lane and a box
constexpr double kPortInset = 34;    // of the outermost line that ends on a box
constexpr double kPortSpacing = 24;  // of lines that end on one box
constexpr double kArrow = 7;         // straight before a box

/// The vertical part of a value's long lines, beside the rows first ... last.
struct Lane {
  int from = 0;  // block
  int first_row = 0;
  int last_row = 0;
  double x = 0;
  bool is_straight = false;  // below the middle of its source
};

class Router {
 public:
  Router(const Blocks& blocks, const LayoutSizes& sizes)
      : blocks_(blocks), sizes_(sizes), lane_of_(blocks.list.size(), -1) {
    find_row_spans();
    choose_lanes();
    choose_ports();
  }

  EdgePath path(int edge) const {
    const BlockEdge& e = blocks_.edges[edge];
    EdgePath path{blocks_.list[e.from].output, e.use, is_long(e), {}};
    if (path.is_skip) {
      leave_to_lane(e, &path.points);
      enter_from_lane(e, edge, &path.points);
    } else {
      const Rect& from = rect(e.from);
      path.points.push_back({from.center_x(), from.bottom()});
      line_to(row_bottom_[row(e.from)], &path.points);
      curve_to({port_x_[edge], rect(e.to).y}, kArrow, &path.points);
    }
    return path;
  }

 private:
  const Rect& rect(int block) const { return blocks_.list[block].rect; }
  int row(int block) const { return blocks_.list[block].row; }
  bool is_long(const BlockEdge& edge) const { return row(edge.to) > row(edge.from) + 1; }
  double lane_x(const BlockEdge& edge) const { return lanes_[lane_of_[edge.from]].x; }

  void find_row_spans() {
    for (const std::vector<int>& blocks : blocks_.rows) {
      double top = 0, bottom = 0, left = 0;
      for (size_t i = 0; i < blocks.size(); ++i) {
        const Rect& r = rect(blocks[i]);
        top = i == 0 ? r.y : std::min(top, r.y);
        bottom = i == 0 ? r.bottom() : std::max(bottom, r.bottom());
        left = i == 0 ? r.x : std::min(left, r.x);
      }
      row_top_.push_back(top);
      row_bottom_.push_back(bottom);
      row_left_.push_back(left);
    }
  }

  // Lanes.

  /// Short ones first: they take the places close to the boxes, and longer ones go around.
  void choose_lanes() {
    for (const BlockEdge& edge : blocks_.edges) {
      if (!is_long(edge)) continue;
      if (lane_of_[edge.from] < 0) {
        lane_of_[edge.from] = static_cast<int>(lanes_.size());
        lanes_.push_back({edge.from, row(edge.from) + 1, 0, 0, false});
      }
      Lane& lane = lanes_[lane_of_[edge.from]];
      lane.last_row = std::max(lane.last_row, row(edge.to) - 1);
    }
    std::vector<int> order(lanes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, {}, [&](int lane) { return lanes_[lane].last_row - lanes_[lane].first_row; });
    std::vector<std::vector<int>> lanes_in_row(blocks_.rows.size());
    for (int lane : order) {
      place_lane(lanes_in_row, &lanes_[lane]);
      for (int r = lanes_[lane].first_row; r <= lanes_[lane].last_row; ++r)
        lanes_in_row[r].push_back(lane);
    }
  }

  void place_lane(const std::vector<std::vector<int>>& lanes_in_row, Lane* lane) const {
    std::vector<double> taken;
    for (int r = lane->first_row; r <= lane->last_row; ++r)
      for (int other : lanes_in_row[r]) taken.push_back(lanes_[other].x);
    std::ranges::sort(taken);
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    const auto collides = [&](double x) {
      const auto near = std::ranges::lower_bound(taken, x - sizes_.lane_gap + 0.01);
      return near != taken.end() && *near < x + sizes_.lane_gap - 0.01;
    };
    lane->x = rect(lane->from).center_x();
    lane->is_straight = passes_boxes(*lane) && !collides(lane->x);
    if (lane->is_straight) return;
    for (int r = lane->first_row; r <= lane->last_row; ++r)
      lane->x = std::min(lane->x, row_left_[r] - kLaneMargin);
    while (collides(lane->x)) lane->x -= sizes_.lane_gap;
  }

  bool passes_boxes(const Lane& lane) const {
    for (int r = lane.first_row; r <= lane.last_row; ++r)
      for (int block : blocks_.rows[r])
        if (rect(block).x - kLaneMargin < lane.x && lane.x < rect(block).right() + kLaneMargin)
          return false;
    return true;
  }

  /// The line meets the block at its left side: no other box of the row is in the way.
  bool is_at_side(int block, const BlockEdge& edge) const {
    const double x = lane_x(edge);
    if (lanes_[lane_of_[edge.from]].is_straight || x > rect(block).x - kLaneMargin / 2)
      return false;
    return std::ranges::none_of(blocks_.rows[row(block)], [&](int other) {
      return rect(other).x < rect(block).x && x < rect(other).right();
    });
  }

  // Ports.

  /// Lines that end on top of one box, each as near to where it comes from as the box and its
  /// neighbours allow.
  void choose_ports() {
    port_x_.resize(blocks_.edges.size());
    for (size_t block = 0; block < blocks_.list.size(); ++block) {
      std::vector<std::pair<double, int>> ports;  // wanted place, edge
      const Rect& to = rect(static_cast<int>(block));
      const double low = to.x + kPortInset, high = to.right() - kPortInset;
      for (int edge : blocks_.edges_to[block]) {
        const BlockEdge& e = blocks_.edges[edge];
        if (is_long(e) && is_at_side(e.to, e)) continue;
        const double from = is_long(e) ? lane_x(e) : rect(e.from).center_x();
        ports.emplace_back(std::clamp(from, low, high), edge);
      }
      std::ranges::stable_sort(ports, {}, &std::pair<double, int>::first);
      place_ports(ports, low, high);
    }
  }

  void place_ports(const std::vector<std::pair<double, int>>& ports, double low, double high) {
    std::vector<double> wanted;
    for (const auto& [x, edge] : ports) wanted.push_back(x);
    const double steps = std::max(1.0, static_cast<double>(ports.size()) - 1);
    const double spacing = std::min(kPortSpacing, (high - low) / steps);
    const std::vector<double> places = spread_out(wanted, spacing);
    for (size_t i = 0; i < ports.size(); ++i) {
      const double least = low + static_cast<double>(i) * spacing;
      const double most = high - static_cast<double>(ports.size() - 1 - i) * spacing;
      port_x_[ports[i].second] = std::max(least, std::min(places[i], most));
    }
  }

  // Paths: from the last point on.

  static void line_to(double y, std::vector<Point>* points) {
    const Point from = points->back();
    if (from.y == y) return;
    points->insert(points->end(),
                   {{from.x, (2 * from.y + y) / 3}, {from.x, (from.y + 2 * y) / 3}, {from.x, y}});
  }

  /// Vertical at both ends; `tail` is the straight end of it, where the arrow stands.
  static void curve_to(const Point& to, double tail, std::vector<Point>* points) {
    const Point from = points->back();
    const double end = to.y - tail, middle = (from.y + end) / 2;
    points->insert(points->end(), {{from.x, middle}, {to.x, middle}, {to.x, end}});
    line_to(to.y, points);
  }

  void leave_to_lane(const BlockEdge& edge, std::vector<Point>* points) const {
    const Rect& from = rect(edge.from);
    const double x = lane_x(edge);
    if (is_at_side(edge.from, edge)) {
      const double y = from.bottom() - std::min(10.0, from.height / 2);
      points->push_back({from.x, y});
      points->insert(points->end(), {{x + (from.x - x) * 0.4, y},
                                     {x, y + bend(from.x - x) * 0.4},
                                     {x, y + bend(from.x - x)}});
      return;
    }
    points->push_back({from.center_x(), from.bottom()});
    line_to(row_bottom_[row(edge.from)], points);
    curve_to({x, row_top_[row(edge.from) + 1]}, 0, points);
  }

  void enter_from_lane(const BlockEdge& edge, int index, std::vector<Point>* points) const {
    const Rect& to = rect(edge.to);
    const double x = lane_x(edge);
    if (is_at_side(edge.to, edge)) {
      const double y = to.y + std::min(sizes_.box_height, to.height) / 2;
      line_to(y - bend(to.x - x), points);
      points->insert(points->end(),
                     {{x, y - bend(to.x - x) * 0.4}, {x + (to.x - x) * 0.4, y}, {to.x, y}});
      return;
    }
    line_to(row_bottom_[row(edge.to) - 1], points);
    curve_to({port_x_[index], to.y}, kArrow, points);
  }

  /// How far down a line gets while it turns towards a lane.
  static double bend(double distance) { return std::min(30.0, 10 + distance / 2); }

  const Blocks& blocks_;
  const LayoutSizes& sizes_;
  std::vector<double> row_top_, row_bottom_, row_left_;
  std::vector<Lane> lanes_;
  std::vector<int> lane_of_;    // by block; -1: no long line
  std::vector<double> port_x_;  // by edge
};

}  // namespace

std::vector<EdgePath> route_edges(const Blocks& blocks, const LayoutSizes& sizes) {
  const Router router(blocks, sizes);
  std::vector<EdgePath> paths;
  for (size_t edge = 0; edge < blocks.edges.size(); ++edge)
    paths.push_back(router.path(static_cast<int>(edge)));
  return paths;
}

}  // namespace tessera
