#pragma once
// What adaptive average and max pooling share: the types and boxes of their values, their windows
// by global index, and how their kernels walk a piece.

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/op.h"
#include "tessera/ops/pool/adaptive_pool.h"

namespace tessera {

/// One of the axes D, H, W.
struct AdaptiveAxis {
  int64_t input_size = 1;
  int64_t output_size = 1;
  Range out{0, 1};  // outputs of the piece
  Range in{0, 1};   // inputs that they read

  /// The inputs of an output, counted from the start of the image.
  Range window(int64_t output) const {
    return {output * input_size / output_size,
            ((output + 1) * input_size + output_size - 1) / output_size};
  }
  /// At least the size of every window.
  int64_t largest_window() const {
    return input_size % output_size == 0 ? input_size / output_size
                                         : std::min(input_size, input_size / output_size + 2);
  }
};

/// A piece of the output on the axes D, H, W; axes that the value lacks have size 1.
using AdaptivePiece = std::array<AdaptiveAxis, 3>;

class AdaptiveGeometry {
 public:
  explicit AdaptiveGeometry(const AdaptivePoolOptions& options) : options_(options) {}

  /// "7x7", with 0 where the input's size is kept.
  std::string settings() const;
  ValueType infer_type(const ValueType& input) const;
  Box needed(const Box& out, const NodeTypes& types) const;
  AdaptivePiece piece(const Box& out, const NodeTypes& types) const;
  /// Sizes of the output for an input with this space.
  Shape output_space(const Shape& input_space) const;

 private:
  AdaptivePoolOptions options_;
};

/// A row of a piece's output: windows along D and H, counted from the start of the needed box, and
/// where the row lies among those of its plane.
struct AdaptiveRow {
  int64_t plane;
  int64_t d, h;  // from the start of the piece
  Range depth, height;

  AdaptiveRow(const AdaptivePiece& piece, int64_t plane, int64_t row);
  /// Where the row begins in a plane of a view of the piece.
  int64_t offset(const std::array<int64_t, 5>& strides) const {
    return d * strides[2] + h * strides[3];
  }
};

inline int64_t rows_per_plane(const AdaptivePiece& piece) {
  return piece[0].out.size() * piece[1].out.size();
}

/// Windows of the piece's outputs along W, counted from the start of the needed box.
std::vector<Range> column_windows(const AdaptivePiece& piece);

/// Calls visit(row, first output's index in the piece) for all rows of all planes, in parallel.
template <class Visit>
void for_adaptive_rows(const AdaptivePiece& piece, int64_t num_planes, Visit&& visit) {
  constexpr int64_t kElementsPerTask = 1 << 14;
  const int64_t per_row =
      piece[0].largest_window() * piece[1].largest_window() * piece[2].in.size();
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, per_row));
  const int64_t per_plane = rows_per_plane(piece);
  at::parallel_for(0, num_planes * per_plane, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      visit(AdaptiveRow(piece, i / per_plane, i % per_plane), i * piece[2].out.size());
  });
}

/// The same for the rows of one plane, in order.
template <class Visit>
void for_adaptive_rows_of_plane(const AdaptivePiece& piece, int64_t plane, Visit&& visit) {
  const int64_t per_plane = rows_per_plane(piece);
  for (int64_t row = 0; row < per_plane; ++row)
    visit(AdaptiveRow(piece, plane, row), (plane * per_plane + row) * piece[2].out.size());
}

}  // namespace tessera
