// How fast the GPU's kernels move numbers: microseconds and GB/s of what each must read and write
// at least once, medians over buffers in turn, so that no pass finds its image in the cache.
//
//   kernels_bench > kernels.csv

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tessera/kernels/norm.h"
#include "tessera/kernels/pack.h"
#include "tessera/kernels/pool.h"

namespace tessera {
namespace {

constexpr int64_t kBytesInTurn = int64_t{512} << 20;  // several times an L2 cache
constexpr int kRuns = 50, kWarmUps = 5;

/// One of some equal images at a time.
class InTurn {
 public:
  InTurn(at::IntArrayRef shape, at::ScalarType type) {
    const auto options = at::TensorOptions().dtype(type).device(at::kCUDA);
    do {
      images_.push_back(at::randn(shape, options).contiguous(at::MemoryFormat::ChannelsLast));
    } while (static_cast<int64_t>(images_.size() * images_.front().nbytes()) < kBytesInTurn);
  }
  const at::Tensor& next() { return images_[turn_++ % images_.size()]; }
  int64_t bytes() const { return static_cast<int64_t>(images_.front().nbytes()); }

 private:
  std::vector<at::Tensor> images_;
  size_t turn_ = 0;
};

void measure(const std::string& name, int64_t bytes, const std::function<void()>& run) {
  for (int i = 0; i < kWarmUps; ++i) run();
  std::vector<float> microseconds;
  for (int i = 0; i < kRuns; ++i) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    begin.record();
    run();
    end.record();
    end.synchronize();
    microseconds.push_back(begin.elapsed_time(end) * 1000);
  }
  std::sort(microseconds.begin(), microseconds.end());
  const double median = microseconds[kRuns / 2];
  std::printf("%s,%.1f,%.0f\n", name.c_str(), median, static_cast<double>(bytes) / median / 1e3);
}

struct NormBuffers {
  InTurn x, y, grad_y, grad_x;
  at::Tensor moments, sum_dy, sum_dy_xhat;
  PlaneNorm norm;

  NormBuffers(at::IntArrayRef shape, at::ScalarType type)
      : x(shape, type), y(shape, type), grad_y(shape, type), grad_x(shape, type) {
    const auto wide = at::TensorOptions().dtype(at::kDouble).device(at::kCUDA);
    const int64_t channels = shape[1];
    moments = at::zeros({1, channels, 3}, wide);
    sum_dy = at::zeros({1, channels}, wide);
    sum_dy_xhat = at::zeros({1, channels}, wide);
    norm = {.mean = at::zeros({1, channels}, wide),
            .inverse_std = at::ones({1, channels}, wide),
            .weight = at::ones({channels}, wide.dtype(at::kFloat)),
            .bias = at::zeros({channels}, wide.dtype(at::kFloat)),
            .activation = NormActivation::kRelu};
  }
};

void measure_norm(const NormKernels& table, const std::string& place, NormBuffers& b) {
  const int64_t bytes = b.x.bytes();
  measure("plane_moments" + place, bytes, [&] { table.plane_moments(b.x.next(), b.moments); });
  measure("normalise" + place, 2 * bytes,
          [&] { table.normalise(b.x.next(), b.norm, {}, b.y.next()); });
  measure("normalise_added" + place, 3 * bytes,
          [&] { table.normalise(b.x.next(), b.norm, b.grad_x.next(), b.y.next()); });
  measure("plane_gradient_sums" + place, 2 * bytes, [&] {
    table.plane_gradient_sums(b.x.next(), {}, b.grad_y.next(), b.norm, b.sum_dy, b.sum_dy_xhat);
  });
  measure("normalise_gradient" + place, 3 * bytes, [&] {
    table.normalise_gradient(b.x.next(), {}, b.grad_y.next(), b.norm, b.sum_dy, b.sum_dy_xhat,
                             b.grad_x.next(), {});
  });
}

/// Two rows or columns of halo on each side, as strips that have no number in common; and the
/// interior as a whole.
void measure_pack(const PackKernels& table, const std::string& place, InTurn& images) {
  const at::Tensor& image = images.next();
  std::vector<at::Tensor> edges, strips;
  int64_t bytes = 0;
  for (int64_t axis = 2; axis < 4; ++axis)
    for (const int64_t begin : {int64_t{2}, image.size(axis) - 4}) {
      const at::Tensor rows = axis == 2 ? image : image.narrow(2, 4, image.size(2) - 8);
      edges.push_back(rows.narrow(axis, begin, 2));
      strips.push_back(edges.back().clone(at::MemoryFormat::ChannelsLast));
      bytes += static_cast<int64_t>(edges.back().nbytes());
    }
  measure("pack" + place, 2 * bytes, [&] { table.move_boxes(BoxStore::kReplace, edges, strips); });
  measure("unpack_add" + place, 3 * bytes,
          [&] { table.move_boxes(BoxStore::kAdd, strips, edges); });
  measure("zero_boxes" + place, bytes, [&] { table.zero_boxes(edges); });
  measure("copy_interior" + place, 2 * images.bytes(), [&] {
    const auto interior = [](const at::Tensor& whole) {
      return whole.narrow(2, 1, whole.size(2) - 2).narrow(3, 1, whole.size(3) - 2);
    };
    table.move_boxes(BoxStore::kReplace, {interior(images.next())}, {interior(images.next())});
  });
}

/// Windows of 2x2 side by side, or 3x3 ones that overlap. The choices are what is left in the
/// cache.
void measure_pool(const MaxPoolKernels& table, const std::string& place, InTurn& images,
                  int64_t kernel) {
  const at::Tensor& image = images.next();
  PoolPiece piece;
  for (int axis = 1; axis < 3; ++axis) {
    const int64_t size = image.size(1 + axis);
    piece[axis] = {kernel, 2, 1, kernel == 3, size, {0, size / 2}, {0, size}};
  }
  InTurn small({image.size(0), image.size(1), image.size(2) / 2, image.size(3) / 2},
               image.scalar_type());
  const at::Tensor choices = at::zeros({small.next().numel()}, image.options().dtype(at::kByte));
  const std::string name = kernel == 3 ? "_3x3" : "_2x2";
  const int64_t bytes = images.bytes() + small.bytes() + choices.numel();
  measure("pool_maxima" + name + place, bytes,
          [&] { table.pool_maxima(piece, images.next(), small.next(), choices); });
  measure("pool_maxima_gradient" + name + place, bytes,
          [&] { table.pool_maxima_gradient(piece, small.next(), choices, images.next()); });
}

/// What a loaded image goes through on its way into a network's buffer.
void measure_load(const PackKernels& table, const std::string& place) {
  const std::vector<int64_t> shape{1, 3, 1024, 1024};
  InTurn images(shape, at::kFloat);
  const at::Tensor loaded = images.next().contiguous();
  measure("load" + place + ",float32,1x3x1024x1024", 2 * images.bytes(),
          [&] { table.move_boxes(BoxStore::kReplace, {loaded}, {images.next()}); });
}

void measure_shape(at::IntArrayRef shape, at::ScalarType type) {
  std::string place = type == at::kFloat ? ",float32," : ",bf16,";
  for (const int64_t size : shape) place += (place.back() == ',' ? "" : "x") + std::to_string(size);
  NormBuffers norm(shape, type);
  measure_norm(*NormKernels::kCuda, ",own" + place, norm);
  measure_norm(NormKernels::kAten, ",aten" + place, norm);
  measure_pack(*PackKernels::kCuda, ",own" + place, norm.x);
  measure_pack(PackKernels::kAten, ",aten" + place, norm.x);
  for (const int64_t kernel : {2, 3}) {
    measure_pool(*MaxPoolKernels::kCuda, ",own" + place, norm.x, kernel);
    measure_pool(MaxPoolKernels::kAten, ",aten" + place, norm.x, kernel);
  }
}

}  // namespace
}  // namespace tessera

int main() {
  const c10::InferenceMode no_autograd;
  if (c10::cuda::device_count() == 0) {
    std::fprintf(stderr, "kernels_bench: no GPU is visible\n");
    return 1;
  }
  std::printf("kernel,table,type,shape,microseconds,gigabytes_per_second\n");
  const std::vector<std::vector<int64_t>> shapes{
      {1, 64, 1024, 1024}, {1, 256, 256, 256}, {32, 256, 56, 56}};
  for (const std::vector<int64_t>& shape : shapes)
    for (const at::ScalarType type : {at::kBFloat16, at::kFloat})
      tessera::measure_shape(shape, type);
  tessera::measure_load(*tessera::PackKernels::kCuda, ",own");
  tessera::measure_load(tessera::PackKernels::kAten, ",aten");
  return 0;
}
