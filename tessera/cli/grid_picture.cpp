#include "tessera/cli/grid_picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::cli {
namespace {

constexpr int kMaxColumns = 16;  // more than a terminal shows are summed up
constexpr int kMaxRows = 16;
constexpr int kMaxLayers = 4;

std::string repeat(const std::string& text, int64_t times) {
  std::string result;
  for (int64_t i = 0; i < times; ++i) result += text;
  return result;
}

/// Centred in a cell of `width` columns.
std::string centred(const std::string& text, int width) {
  const int space = std::max(0, width - static_cast<int>(text.size()));
  return std::string(space / 2, ' ') + text + std::string(space - space / 2, ' ');
}

struct Cell {
  std::string rank;
  std::string size;
};

/// One layer of `rows` x `columns` cells. A shaded border is one that a halo crosses.
std::string draw_layer(const std::vector<std::vector<Cell>>& rows) {
  size_t width = 8;
  for (const auto& row : rows)
    for (const Cell& cell : row)
      width = std::max({width, cell.rank.size() + 2, cell.size.size() + 2});
  const int columns = static_cast<int>(rows[0].size());
  const auto border = [&](const char* left, const char* cross, const char* right,
                          const char* line) {
    std::string text = std::string("  ") + left;
    for (int column = 0; column < columns; ++column)
      text += (column ? cross : "") + repeat(line, static_cast<int64_t>(width));
    return text + right + "\n";
  };
  std::string picture = border("┌", "┬", "┐", "─");
  for (size_t row = 0; row < rows.size(); ++row) {
    if (row) picture += border("├", "┼", "┤", "░");
    for (const bool ranks : {true, false}) {
      picture += "  │";
      for (int column = 0; column < columns; ++column) {
        const Cell& cell = rows[row][column];
        picture +=
            (column ? "░" : "") + centred(ranks ? cell.rank : cell.size, static_cast<int>(width));
      }
      picture += "│\n";
    }
  }
  return picture + border("└", "┴", "┘", "─");
}

/// The union of a rank's pieces.
Box rank_box(const Layout& layout, int rank) {
  Box box = Box::whole(layout.global_shape());
  bool first = true;
  for (int piece : layout.pieces_of(rank)) {
    box = first ? layout.piece(piece).box : hull(box, layout.piece(piece).box);
    first = false;
  }
  return box;
}

}  // namespace

std::string draw_grid(const Layout& input, const Plan& plan) {
  const int num_spatial = static_cast<int>(input.global_shape().size()) - 2;
  const int64_t columns = plan.space_parts(0, num_spatial - 1);
  const int64_t rows = num_spatial > 1 ? plan.space_parts(0, num_spatial - 2) : 1;
  const int64_t layers = num_spatial > 2 ? plan.space_parts(0, 0) : 1;
  std::string picture;
  for (int64_t layer = 0; layer < std::min<int64_t>(layers, kMaxLayers); ++layer) {
    std::vector<std::vector<Cell>> cells;
    for (int64_t row = 0; row < std::min<int64_t>(rows, kMaxRows); ++row) {
      cells.emplace_back();
      for (int64_t column = 0; column < std::min<int64_t>(columns, kMaxColumns); ++column) {
        const int rank = static_cast<int>((layer * rows + row) * columns + column);
        Shape size = rank_box(input, rank).shape();
        size.erase(size.begin(), size.begin() + 2);
        cells.back().push_back({fmt::format("rank {}", rank), to_string(size)});
      }
    }
    if (layers > 1) picture += fmt::format("  layer {}\n", layer);
    picture += draw_layer(cells);
  }
  if (columns > kMaxColumns || rows > kMaxRows || layers > kMaxLayers)
    picture += fmt::format("  (the first of {} x {} x {} parts)\n", layers, rows, columns);
  if (plan.data > 1) picture += fmt::format("  and the same for each of {} replicas\n", plan.data);
  return picture;
}

}  // namespace tessera::cli
