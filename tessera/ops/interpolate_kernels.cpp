#include "tessera/ops/interpolate_kernels.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "tessera/ops/image_view.h"

namespace tessera {
namespace {

constexpr int64_t kParallelElements = 16384;

/// One of the up to four input rows that an output row blends.
struct RowTerm {
  int64_t d = 0;
  int64_t h = 0;
  double weight = 0;
};

class RowTerms {
 public:
  RowTerms(const Interpolation::Source& d, const Interpolation::Source& h) {
    add(d.low, h.low, (1 - d.weight) * (1 - h.weight));
    add(d.low, h.high, (1 - d.weight) * h.weight);
    add(d.high, h.low, d.weight * (1 - h.weight));
    add(d.high, h.high, d.weight * h.weight);
  }
  const RowTerm* begin() const { return terms_.data(); }
  const RowTerm* end() const { return terms_.data() + count_; }
  int count() const { return count_; }

 private:
  void add(int64_t d, int64_t h, double weight) {
    if (weight != 0) terms_[count_++] = {d, h, weight};
  }

  std::array<RowTerm, 4> terms_;
  int count_ = 0;
};

/// The two steps of a row, and their adjoints; that of blend() is blend() the other way round.
template <class T>
class RowInterpolation {
 public:
  RowInterpolation(const AxisSources& columns, InterpolationMode mode, int64_t input_width)
      : mode_(mode), width_(input_width) {
    for (const Interpolation::Source& source : columns) {
      low_.push_back(source.low);
      high_.push_back(source.high);
      weight_.push_back(static_cast<T>(source.weight));
    }
  }

  int64_t input_width() const { return width_; }

  void blend(T weight, const T* in, T* row) const {
    for (int64_t i = 0; i < width_; ++i) row[i] += weight * in[i];
  }

  void take(const T* row, T* out) const {
    const int64_t n = static_cast<int64_t>(low_.size());
    if (mode_ == InterpolationMode::kNearest) {
      for (int64_t i = 0; i < n; ++i) out[i] = row[low_[i]];
    } else {
      for (int64_t i = 0; i < n; ++i)
        out[i] = (1 - weight_[i]) * row[low_[i]] + weight_[i] * row[high_[i]];
    }
  }

  void take_adjoint(const T* grad_out, T* row) const {
    const int64_t n = static_cast<int64_t>(low_.size());
    if (mode_ == InterpolationMode::kNearest) {
      for (int64_t i = 0; i < n; ++i) row[low_[i]] += grad_out[i];
    } else {
      for (int64_t i = 0; i < n; ++i) {
        row[low_[i]] += (1 - weight_[i]) * grad_out[i];
        row[high_[i]] += weight_[i] * grad_out[i];
      }
    }
  }

 private:
  InterpolationMode mode_;
  int64_t width_;
  std::vector<int64_t> low_, high_;
  std::vector<T> weight_;
};

template <class T>
void interpolate_forward(const PieceSources& sources, InterpolationMode mode,
                         const ImageView<const T>& x, const ImageView<T>& y) {
  const RowInterpolation<T> columns(sources[2], mode, x.sizes[4]);
  const int64_t rows = y.sizes[2] * y.sizes[3];
  const int64_t grain = std::max<int64_t>(1, kParallelElements / y.sizes[4]);
  at::parallel_for(0, y.num_planes() * rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<T> blended(columns.input_width());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / rows, d = i % rows / y.sizes[3], h = i % y.sizes[3];
      const auto row_of = [&](const RowTerm& term) {
        return x.plane(plane) + term.d * x.strides[2] + term.h * x.strides[3];
      };
      T* out = y.plane(plane) + d * y.strides[2] + h * y.strides[3];
      const RowTerms terms(sources[0][d], sources[1][h]);
      if (terms.count() == 1) {  // its weight is 1
        columns.take(row_of(*terms.begin()), out);
        continue;
      }
      std::fill(blended.begin(), blended.end(), T(0));
      for (const RowTerm& term : terms)
        columns.blend(static_cast<T>(term.weight), row_of(term), blended.data());
      columns.take(blended.data(), out);
    }
  });
}

/// By planes, because several output rows write the same input rows.
template <class T>
void interpolate_backward(const PieceSources& sources, InterpolationMode mode,
                          const ImageView<const T>& grad_y, const ImageView<T>& grad_x) {
  const RowInterpolation<T> columns(sources[2], mode, grad_x.sizes[4]);
  const auto add_plane = [&](const T* in, T* out, std::vector<T>& blended) {
    for (int64_t d = 0; d < grad_y.sizes[2]; ++d)
      for (int64_t h = 0; h < grad_y.sizes[3]; ++h) {
        std::fill(blended.begin(), blended.end(), T(0));
        columns.take_adjoint(in + d * grad_y.strides[2] + h * grad_y.strides[3], blended.data());
        for (const RowTerm& term : RowTerms(sources[0][d], sources[1][h]))
          columns.blend(static_cast<T>(term.weight), blended.data(),
                        out + term.d * grad_x.strides[2] + term.h * grad_x.strides[3]);
      }
  };
  at::parallel_for(0, grad_x.num_planes(), 1, [&](int64_t begin, int64_t end) {
    std::vector<T> blended(columns.input_width());
    for (int64_t plane = begin; plane < end; ++plane) {
      grad_x.fill_plane(plane, T(0));
      add_plane(grad_y.plane(plane), grad_x.plane(plane), blended);
    }
  });
}

}  // namespace

void interpolate_piece(const PieceSources& sources, InterpolationMode mode, const at::Tensor& x,
                       const at::Tensor& y) {
  const at::Tensor rows = read_rows(x);
  write_rows(y, [&](const at::Tensor& out) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "interpolate", [&] {
      interpolate_forward(sources, mode, ImageView<const scalar_t>(rows), ImageView<scalar_t>(out));
    });
  });
}

void interpolate_piece_adjoint(const PieceSources& sources, InterpolationMode mode,
                               const at::Tensor& grad_y, const at::Tensor& grad_x) {
  const at::Tensor rows = read_rows(grad_y);
  write_rows(grad_x, [&](const at::Tensor& out) {
    AT_DISPATCH_FLOATING_TYPES(grad_y.scalar_type(), "interpolate", [&] {
      interpolate_backward(sources, mode, ImageView<const scalar_t>(rows),
                           ImageView<scalar_t>(out));
    });
  });
}

}  // namespace tessera
