#include "tessera/kernels/adaptive_pool.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tessera/kernels/cpu/pool_loops.h"
#include "tessera/kernels/cpu/row_sum.h"

namespace tessera {
namespace {

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

AdaptiveRow::AdaptiveRow(const AdaptivePiece& piece, int64_t plane, int64_t row)
    : plane(plane), d(row / piece[1].out.size()), h(row % piece[1].out.size()) {
  depth = piece[0].window(piece[0].out.begin + d).shifted(-piece[0].in.begin);
  height = piece[1].window(piece[1].out.begin + h).shifted(-piece[1].in.begin);
}

int64_t rows_per_plane(const AdaptivePiece& piece) {
  return piece[0].out.size() * piece[1].out.size();
}

/// Windows of the piece's outputs along W, counted from the start of the needed box.
std::vector<Range> column_windows(const AdaptivePiece& piece) {
  const AdaptiveAxis& width = piece[2];
  std::vector<Range> windows;
  for (int64_t output = width.out.begin; output < width.out.end; ++output)
    windows.push_back(width.window(output).shifted(-width.in.begin));
  return windows;
}

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

/// Calls visit(first element, offset) for the rows of the image in the windows of an output row, in
/// scan order; `offset` is the row's place in the window, in rows.
template <class T, class Visit>
void for_window_rows(const AdaptiveRow& row, const ImageView<T>& image, Visit&& visit) {
  int64_t offset = 0;
  for (int64_t d = row.depth.begin; d < row.depth.end; ++d)
    for (int64_t h = row.height.begin; h < row.height.end; ++h)
      visit(image.plane(row.plane) + d * image.strides[2] + h * image.strides[3], offset++);
}

template <class T>
void adaptive_averages(const AdaptivePiece& piece, const ImageView<const T>& x,
                       const ImageView<T>& y) {
  const std::vector<Range> columns = column_windows(piece);
  for_adaptive_rows(piece, y.num_planes(), [&](const AdaptiveRow& row, int64_t) {
    std::vector<double> sums(columns.size(), 0);
    for_window_rows(row, x, [&](const T* in, int64_t) {
      for (size_t i = 0; i < columns.size(); ++i)
        sums[i] += sum_row(in + columns[i].begin, columns[i].size());
    });
    T* out = y.plane(row.plane) + row.offset(y.strides);
    const int64_t rows = row.depth.size() * row.height.size();
    for (size_t i = 0; i < columns.size(); ++i)
      out[i] = static_cast<T>(sums[i] / static_cast<double>(rows * columns[i].size()));
  });
}

template <class T>
void adaptive_averages_gradient(const AdaptivePiece& piece, const ImageView<const T>& grad_y,
                                const ImageView<T>& grad_x) {
  const std::vector<Range> columns = column_windows(piece);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_adaptive_rows_of_plane(piece, plane, [&](const AdaptiveRow& row, int64_t) {
      const T* dy = grad_y.plane(plane) + row.offset(grad_y.strides);
      const int64_t rows = row.depth.size() * row.height.size();
      std::vector<T> shares(columns.size());
      for (size_t i = 0; i < columns.size(); ++i)
        shares[i] = dy[i] / static_cast<T>(rows * columns[i].size());
      for_window_rows(row, grad_x, [&](T* dx, int64_t) {
        for (size_t i = 0; i < columns.size(); ++i)
          for (int64_t c = columns[i].begin; c < columns[i].end; ++c) dx[c] += shares[i];
      });
    });
  });
}

/// The first of equal values wins, and a NaN always does: PyTorch's rules. A code is the place in
/// the window, in scan order.
template <class T, class Code>
void adaptive_maxima(const AdaptivePiece& piece, const ImageView<const T>& x, const ImageView<T>& y,
                     Code* codes) {
  const std::vector<Range> columns = column_windows(piece);
  for_adaptive_rows(piece, y.num_planes(), [&](const AdaptiveRow& row, int64_t first) {
    T* best = y.plane(row.plane) + row.offset(y.strides);
    Code* choice = codes + first;
    std::fill_n(best, columns.size(), -std::numeric_limits<T>::infinity());
    std::fill_n(choice, columns.size(), Code{0});
    for_window_rows(row, x, [&](const T* in, int64_t offset) {
      for (size_t i = 0; i < columns.size(); ++i)
        for (int64_t c = columns[i].begin; c < columns[i].end; ++c) {
          if (!(in[c] > best[i] || std::isnan(in[c]))) continue;
          best[i] = in[c];
          choice[i] = static_cast<Code>(offset * columns[i].size() + c - columns[i].begin);
        }
    });
  });
}

template <class T, class Code>
void adaptive_maxima_gradient(const AdaptivePiece& piece, const ImageView<const T>& grad_y,
                              const Code* codes, const ImageView<T>& grad_x) {
  const std::vector<Range> columns = column_windows(piece);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_adaptive_rows_of_plane(piece, plane, [&](const AdaptiveRow& row, int64_t first) {
      const T* dy = grad_y.plane(plane) + row.offset(grad_y.strides);
      for (size_t i = 0; i < columns.size(); ++i) {
        const int64_t place = codes[first + static_cast<int64_t>(i)];
        const int64_t window_row = place / columns[i].size();
        const int64_t d = row.depth.begin + window_row / row.height.size();
        const int64_t h = row.height.begin + window_row % row.height.size();
        const int64_t c = columns[i].begin + place % columns[i].size();
        grad_x.plane(plane)[d * grad_x.strides[2] + h * grad_x.strides[3] + c] += dy[i];
      }
    });
  });
}

/// Calls run(from, to) with views of contiguous rows.
template <class Run>
void on_images(const at::Tensor& from, const at::Tensor& to, Run&& run) {
  const at::Tensor read = read_rows(from);
  write_rows(to, [&](const at::Tensor& written) {
    AT_DISPATCH_FLOATING_TYPES(read.scalar_type(), "adaptive_pool", [&] {
      run(ImageView<const scalar_t>(read), ImageView<scalar_t>(written));
    });
  });
}

}  // namespace

namespace cpu {

void pool_adaptive_averages(const AdaptivePiece& piece, const at::Tensor& x, const at::Tensor& y) {
  on_images(x, y, [&](const auto& from, const auto& to) { adaptive_averages(piece, from, to); });
}

void pool_adaptive_averages_gradient(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                     const at::Tensor& grad_x) {
  on_images(grad_y, grad_x,
            [&](const auto& dy, const auto& dx) { adaptive_averages_gradient(piece, dy, dx); });
}

void pool_adaptive_maxima(const AdaptivePiece& piece, const at::Tensor& x, const at::Tensor& y,
                          const at::Tensor& choices) {
  const at::Tensor from = read_rows(x);
  write_rows(y, [&](const at::Tensor& to) {
    on_choices(from, choices, [&]<class T>(auto* codes) {
      adaptive_maxima(piece, ImageView<const T>(from), ImageView<T>(to), codes);
    });
  });
}

void pool_adaptive_maxima_gradient(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                   const at::Tensor& choices, const at::Tensor& grad_x) {
  const at::Tensor from = read_rows(grad_y);
  write_rows(grad_x, [&](const at::Tensor& to) {
    on_choices(from, choices, [&]<class T>(const auto* codes) {
      adaptive_maxima_gradient(piece, ImageView<const T>(from), codes, ImageView<T>(to));
    });
  });
}

}  // namespace cpu

const AdaptivePoolKernels AdaptivePoolKernels::kCpu{
    .pool_adaptive_averages = cpu::pool_adaptive_averages,
    .pool_adaptive_averages_gradient = cpu::pool_adaptive_averages_gradient,
    .pool_adaptive_maxima = cpu::pool_adaptive_maxima,
    .pool_adaptive_maxima_gradient = cpu::pool_adaptive_maxima_gradient};

}  // namespace tessera
