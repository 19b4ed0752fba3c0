#include "tessera/kernels/prelu.h"

#include <ATen/Dispatch.h>

#include <vector>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/plane_blocks.h"

namespace tessera {
namespace {

/// out = x > 0 ? value : slope * value. With x as value it is forward, with the gradient of the
/// output it is that of the input.
template <class T>
void slope_rows(const at::Tensor& x_image, const at::Tensor& value_image, const at::Tensor& slopes,
                const at::Tensor& out_image) {
  const std::vector<at::Tensor> images = join_rows({x_image, value_image, out_image});
  const ImageView<const T> x(images[0]), value(images[1]);
  const ImageView<T> out(images[2]);
  const T* slope = slopes.data_ptr<T>();
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const T s = slope[c];
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      const T* from = value.row(n, c, d, h) + column;
      T* to = out.row(n, c, d, h) + column;
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i) to[i] = in[i] > 0 ? from[i] : s * from[i];
    });
  });
}

/// The sum of x * dy over the elements that are multiplied by the slope, in each block.
template <class T>
std::vector<double> block_sums(const PlaneBlocks& blocks, const ImageView<const T>& x,
                               const ImageView<const T>& dy) {
  std::vector<double> sums(blocks.total());
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    double sum = 0;
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      const T* grad = dy.row(n, c, d, h) + column;
      for (int64_t i = 0; i < columns; ++i)
        sum += in[i] > 0 ? 0.0 : static_cast<double>(in[i]) * grad[i];
    });
    sums[block] = sum;
  });
  return sums;
}

}  // namespace

namespace cpu {

void apply_slopes(const at::Tensor& x, const at::Tensor& value, const at::Tensor& slopes,
                  const at::Tensor& out) {
  const at::Tensor in = read_rows(x), from = read_rows(value), factors = slopes.contiguous();
  write_rows(out, [&](const at::Tensor& to) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "prelu",
                               [&] { slope_rows<scalar_t>(in, from, factors, to); });
  });
}

at::Tensor slope_gradients(const at::Tensor& x, const at::Tensor& grad_y) {
  const std::vector<at::Tensor> images = join_rows({read_rows(x), read_rows(grad_y)});
  const PlaneBlocks blocks(images[0]);
  const at::Tensor sums = at::zeros({x.size(1)}, at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "prelu", [&] {
    const std::vector<double> parts = block_sums<scalar_t>(
        blocks, ImageView<const scalar_t>(images[0]), ImageView<const scalar_t>(images[1]));
    for (int64_t block = 0; block < blocks.total(); ++block)
      sums.data_ptr<double>()[blocks.channel(block)] += parts[block];
  });
  return sums;
}

}  // namespace cpu

const PreluKernels PreluKernels::kCpu{.apply_slopes = cpu::apply_slopes,
                                      .slope_gradients = cpu::slope_gradients};

}  // namespace tessera
