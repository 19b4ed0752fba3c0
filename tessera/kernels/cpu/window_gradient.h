#pragma once
// gradient[k, row] += Σ over all windows j of out[k, j] * windows[row, j], where a row is a channel
// and a tap. Columns of both are packed in blocks, and sums are dot products over a block:
//
//         columns                   columns
//   k    [ ─────── ]         row   [ ─────── ]
//   k+1  [ ─────── ]    x    row+1 [ ─────── ]   ->  a few k by a few rows, in registers
//
// A task has some of the rows and of k, and walks over all windows; so no thread has sums of its
// own, and bits do not depend on how many threads there are.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/strided_image.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/window_rows.h"

namespace tessera {

template <class T>
class WindowGradient {
 public:
  /// `gradient` is [num_out, num_in, taps] of the group.
  WindowGradient(const StridedImage<const T>& in, const Windows& windows,
                 const StridedImage<const T>& out, const GroupChannels& group, T* gradient)
      : in_(in),
        windows_(windows),
        out_(out),
        pixels_{out.size, {1, 1, 1}, {Tap{}}},
        group_(group),
        num_rows_(group.num_in * std::ssize(windows.taps)),
        columns_(columns_at_once()),
        stride_(columns_ + kVectorBytes / static_cast<int64_t>(sizeof(T))),
        gradient_(gradient) {}

  void run() const {
    const int64_t row_parts = (num_rows_ + kRowsAtOnce - 1) / kRowsAtOnce;
    // Few parts are cut by channels of the output, too, so that every thread has some.
    const int64_t wanted = (2 * at::get_num_threads() + row_parts - 1) / row_parts;
    const int64_t k_parts = std::clamp<int64_t>(wanted, 1, (group_.num_out + 15) / 16);
    at::parallel_for(0, row_parts * k_parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r = task % row_parts, k = task / row_parts;
        run_task({r * num_rows_ / row_parts, (r + 1) * num_rows_ / row_parts},
                 {k * group_.num_out / k_parts, (k + 1) * group_.num_out / k_parts});
      }
    });
  }

 private:
  static constexpr int64_t kRowsAtOnce = 96;
  static constexpr int64_t kOutsAtOnce = 64;
  static constexpr int64_t kColumnBytes = 4096;  // of a row; both blocks stay in the second cache

  struct Part {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  static int64_t whole_registers(int64_t count) {
    return (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  }

  int64_t num_columns() const { return out_.batch * out_.num_pixels(); }
  /// Of the shapes alone: the order of additions follows from it.
  int64_t columns_at_once() const {
    return whole_registers(std::min(num_columns(), kColumnBytes / static_cast<int64_t>(sizeof(T))));
  }

  void run_task(const Part& rows, const Part& outs) const {
    T* columns = thread_buffer<T>(stride_ * (rows.size() + kOutsAtOnce));
    T* out_columns = columns + stride_ * rows.size();
    WindowRows<T> windows(in_, windows_, group_.first_in);
    WindowRows<T> pixels(out_, pixels_, group_.first_out);
    for (int64_t begin = 0; begin < num_columns(); begin += columns_) {
      const int64_t count = std::min(columns_, num_columns() - begin);
      const int64_t padded = whole_registers(count);
      const std::vector<WindowRun> runs = runs_of_windows(out_.size, begin, count, columns_);
      windows.set_columns(runs, columns_, 0, padded);
      windows.pack(rows.begin, rows.end, columns, stride_);
      pixels.set_columns(runs, columns_, 0, padded);
      for (int64_t out = outs.begin; out < outs.end; out += kOutsAtOnce) {
        const Part some{out, std::min(out + kOutsAtOnce, outs.end)};
        pixels.pack(some.begin, some.end, out_columns, stride_);
        multiply(rows, some, columns, out_columns, padded);
      }
    }
  }

  void multiply(const Part& rows, const Part& outs, const T* columns, const T* out_columns,
                int64_t length) const {
    for (int64_t row = 0; row < rows.size(); row += kDotColumns)
      for (int64_t out = 0; out < outs.size(); out += kDotRows)
        add_dot_products(static_cast<int>(std::min<int64_t>(kDotRows, outs.size() - out)),
                         static_cast<int>(std::min<int64_t>(kDotColumns, rows.size() - row)),
                         length, out_columns + out * stride_, stride_, columns + row * stride_,
                         stride_, gradient_ + (outs.begin + out) * num_rows_ + rows.begin + row,
                         num_rows_);
  }

  const StridedImage<const T> in_;
  const Windows& windows_;
  const StridedImage<const T> out_;
  const Windows pixels_;
  const GroupChannels group_;
  const int64_t num_rows_, columns_;
  const int64_t stride_;  // of rows: not a multiple of what the caches' sets repeat after
  T* gradient_;
};

}  // namespace tessera
