#include "tessera/kernels/norm.h"

#include <algorithm>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/lanes.h"
#include "tessera/kernels/cpu/moments.h"
#include "tessera/kernels/cpu/norm_gradient.h"
#include "tessera/kernels/cpu/plane_blocks.h"
#include "tessera/kernels/cpu/plane_norm.h"
#include "tessera/kernels/cpu/register_rows.h"

namespace tessera {
namespace {

/// Of the distances from the block's first number. The sum of their squares loses nothing to that
/// of all distances from the mean, which has the first number's among them: it is at most as many
/// times as large as the block has numbers.
template <class T>
Moments block_moments(const PlaneBlocks& blocks, int64_t block, const ImageView<const T>& x) {
  const int64_t n = blocks.batch(block), c = blocks.channel(block);
  double first = 0, count = 0;
  Lanes sum, squares;
  blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
    const T* row = x.row(n, c, d, h) + column;
    if (count == 0) first = row[0];
    count += static_cast<double>(columns);
    add_terms(
        columns,
        [&](int64_t i, auto some) {
          fetch_ahead(row + i);
          const Vector<double> distance = only(widened<T>(load_few(row + i, some)) - first, some);
          return Terms<2>{distance, distance * distance};
        },
        sum, squares);
  });
  const double distance = sum.sum() / count;
  return {count, first + distance, std::max(squares.sum() - distance * distance * count, 0.0)};
}

template <NormActivation kActivation, class T>
void normalise_blocks(const at::Tensor& x_image, const PlaneNumbers& norm,
                      const at::Tensor& added_image, const at::Tensor& y_image) {
  const bool adds = added_image.defined();
  const std::vector<at::Tensor> images =
      join_rows({x_image, adds ? added_image : x_image, y_image});
  const ImageView<const T> x(images[0]), added(images[1]);
  const ImageView<T> y(images[2]);
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const Affine<Number<T>> affine(norm, n, c);
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T *in = x.row(n, c, d, h) + column, *other = added.row(n, c, d, h) + column;
      T* out = y.row(n, c, d, h) + column;
      for_registers<T>(columns, [&](int64_t i, auto count) {
        fetch_ahead(in + i);
        fetch_ahead(other + i);
        Vector<T> value = affine(load_part(in + i, count));
        if (adds) value += load_part(other + i, count);
        store_part(out + i, activate<kActivation>(value), count);
      });
    });
  });
}

}  // namespace

namespace cpu {

void plane_moments(const at::Tensor& x, const at::Tensor& moments) {
  const PlaneIndex cell(moments, x.size(1));
  const at::Tensor image = join_rows({read_rows(x)})[0];
  const PlaneBlocks blocks(image);
  std::vector<Moments> parts(blocks.total());
  on_numbers_of(x, [&]<class T>() {
    const ImageView<const T> view(image);
    blocks.in_parallel(
        [&](int64_t block) { parts[block] = block_moments<T>(blocks, block, view); });
  });
  std::vector<Moments> of_cells(moments.numel() / kNumbersPerCell);
  for (int64_t block = 0; block < blocks.total(); ++block)
    of_cells[cell(blocks.batch(block), blocks.channel(block))].merge(parts[block]);
  write_moments(of_cells, moments);
}

void normalise(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& added,
               const at::Tensor& y) {
  write_rows(y, [&](const at::Tensor& image) {
    const at::Tensor other = added.defined() ? read_rows(added) : at::Tensor();
    const PlaneNumbers numbers(norm, x.size(1));
    on_numbers_of(x, [&]<class T>() {
      if (norm.activation == NormActivation::kRelu)
        normalise_blocks<NormActivation::kRelu, T>(read_rows(x), numbers, other, image);
      else if (norm.activation == NormActivation::kRelu6)
        normalise_blocks<NormActivation::kRelu6, T>(read_rows(x), numbers, other, image);
      else
        normalise_blocks<NormActivation::kNone, T>(read_rows(x), numbers, other, image);
    });
  });
}

}  // namespace cpu

const NormKernels NormKernels::kCpu{.plane_moments = cpu::plane_moments,
                                    .normalise = cpu::normalise,
                                    .plane_gradient_sums = cpu::plane_gradient_sums,
                                    .normalise_gradient = cpu::normalise_gradient};

}  // namespace tessera
