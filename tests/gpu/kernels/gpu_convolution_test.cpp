// Convolutions on a GPU beside those of the CPU in float64: views that begin and end anywhere,
// dense or inside larger images, groups, strides, dilation; and in a CUDA graph.

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include "tessera/graph/number_type.h"
#include "tessera/kernels/convolution.h"
#include "tests/gpu/kernels/gpu_views.h"

namespace tessera::gpu_test {
namespace {

struct Case {
  ConvolutionShape shape;
  at::Tensor fine, weight, fine_bias, coarse_bias, coarse;  // float64, on the CPU
};

/// How the fine view lies to the windows.
enum class Ends {
  kExact,    // from the first window's beginning to the last one's end
  kPadded,   // as a convolution that keeps an image's size, in one piece
  kAnywhere  // may begin and end outside or inside
};

int64_t draw_channels(Draw& draw, int64_t num_spatial) {
  return draw.between(0, 1) == 0 ? draw.between(1, 20)
                                 : 8 * draw.between(1, num_spatial == 3 ? 3 : 9);
}

void draw_axis(Draw& draw, Ends ends, Case& drawn, Shape& fine, Shape& weight, Shape& coarse) {
  ConvolutionShape& shape = drawn.shape;
  const bool is_padded = ends == Ends::kPadded;
  const int64_t kernel = is_padded ? 2 * draw.between(0, 2) + 1 : draw.between(1, 4);
  shape.stride.push_back(is_padded && draw.between(0, 1) == 0 ? 1 : draw.between(1, 3));
  shape.dilation.push_back(draw.between(1, 2));
  const int64_t reach = (kernel - 1) * shape.dilation.back() + 1;
  const int64_t size = reach + draw.between(0, 13);
  weight.push_back(kernel);
  coarse.push_back((size - reach) / shape.stride.back() + 1);
  if (ends == Ends::kExact) return fine.push_back(size);
  const int64_t begin = is_padded ? (reach - 1) / 2 : draw.between(-2, size - 1);
  shape.fine_begin.push_back(begin);
  fine.push_back(is_padded ? std::max<int64_t>(size - 2 * begin, 1)
                           : draw.between(1, size - begin + 2));
}

Case draw_case(Draw& draw, int64_t num_spatial, Ends ends) {
  Case drawn;
  drawn.shape.groups = draw.between(0, 3) == 0 ? draw.between(2, 5) : 1;
  const int64_t in = draw_channels(draw, num_spatial), out = draw_channels(draw, num_spatial);
  const int64_t batch = draw.between(1, 3);
  Shape fine{batch, drawn.shape.groups * in}, weight{drawn.shape.groups * out, in};
  Shape coarse{batch, drawn.shape.groups * out};
  for (int64_t axis = 0; axis < num_spatial; ++axis)
    draw_axis(draw, ends, drawn, fine, weight, coarse);
  drawn.fine = draw.uniform(fine, -1, 1);
  drawn.weight = draw.uniform(weight, -1, 1);
  drawn.fine_bias = draw.uniform({fine[1]}, -1, 1);
  drawn.coarse_bias = draw.uniform({coarse[1]}, -1, 1);
  drawn.coarse = draw.uniform(coarse, -1, 1);
  return drawn;
}

struct Results {
  at::Tensor coarse, fine, weight_gradient;
};

Results on_cpu(const Case& c) {
  const int64_t bytes = std::max(
      convolution_scratch_bytes(c.shape, c.weight.sizes(), at::kDouble).most,
      convolution_gradient_scratch_bytes(c.shape, c.weight.sizes(), c.coarse.sizes(), at::kDouble)
          .most);
  const at::Tensor scratch = at::empty({bytes}, at::kByte);
  Results results{at::empty_like(c.coarse), at::empty_like(c.fine), at::ones_like(c.weight)};
  const ConvolutionKernels& table = ConvolutionKernels::kCpu;
  table.convolve(c.shape, c.fine, c.weight, c.coarse_bias, results.coarse, scratch);
  table.convolve_transposed(c.shape, c.coarse, c.weight, c.fine_bias, results.fine, scratch);
  table.add_convolution_weight_gradient(c.shape, c.fine, c.coarse, results.weight_gradient,
                                        scratch);
  return results;
}

Results on_gpu(Draw& draw, const Case& c, const ConvolutionKernels& table, at::ScalarType type) {
  const Placed fine(draw, c.fine, type, draw_lying(draw));
  const Placed coarse(draw, c.coarse, type, draw_lying(draw));
  const Placed to_coarse(draw, c.coarse.sizes().vec(), type, draw_lying(draw));
  const Placed to_fine(draw, c.fine.sizes().vec(), type, draw_lying(draw));
  const at::Tensor weight = run_on_gpu(draw, c.weight, wide(type));
  const at::Tensor gradient = run_on_gpu(draw, at::ones_like(c.weight), wide(type));
  table.convolve(c.shape, fine, weight, run_on_gpu(draw, c.coarse_bias, wide(type)), to_coarse, {});
  table.convolve_transposed(c.shape, coarse, weight, run_on_gpu(draw, c.fine_bias, wide(type)),
                            to_fine, {});
  table.add_convolution_weight_gradient(c.shape, fine, coarse, gradient, {});
  Results results{to_coarse.view().cpu(), to_fine.view().cpu(), gradient.cpu()};
  to_coarse.expect_surroundings_untouched();
  to_fine.expect_surroundings_untouched();
  return results;
}

void expect_alike(const Results& found, const Results& right, double most) {
  EXPECT_LE(distance(found.coarse, right.coarse), most);
  EXPECT_LE(distance(found.fine, right.fine), most);
  EXPECT_LE(distance(found.weight_gradient, right.weight_gradient), most);
}

/// The product is rounded when it is written, the bias where the library takes one of the images'
/// type, and their sum.
void expect_rounded(const char* what, const at::Tensor& found, const at::Tensor& right,
                    double largest_bias) {
  constexpr double kHalfOfLastBit = 1.0 / 256;
  const at::Tensor apart = (found.to(at::kDouble) - right).abs();
  const at::Tensor allowed =
      2 * (right.abs() + largest_bias) * kHalfOfLastBit + right.abs().max() * 1e-5;
  EXPECT_TRUE((apart <= allowed).all().item<bool>())
      << what << " " << right.sizes() << ": " << (apart - allowed).max().item<double>()
      << " too far, of " << right.abs().max().item<double>();
}

void expect_rounded(const Results& found, const Results& right) {
  expect_rounded("coarse", found.coarse, right.coarse, 1);
  expect_rounded("fine", found.fine, right.fine, 1);
  expect_rounded("weight gradient", found.weight_gradient, right.weight_gradient, 1);
}

Case rounded_to_bf16(const Case& c) {
  Case rounded = c;
  for (at::Tensor* numbers : {&rounded.fine, &rounded.weight, &rounded.coarse})
    *numbers = numbers->to(at::kBFloat16).to(at::kDouble);
  return rounded;
}

/// Strict float32 while it lives.
class StrictFloat32 {
 public:
  StrictFloat32() : before_(at::globalContext().allowTF32CuDNN()) {
    at::globalContext().setAllowTF32CuDNN(false);
  }
  ~StrictFloat32() { at::globalContext().setAllowTF32CuDNN(before_); }
  StrictFloat32(const StrictFloat32&) = delete;
  StrictFloat32& operator=(const StrictFloat32&) = delete;

 private:
  bool before_;
};

void expect_same_numbers_as_cpu(uint64_t count, Ends ends) {
  const StrictFloat32 strict;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Case c = draw_case(draw, 1 + static_cast<int64_t>(seed % 3), ends);
    const Results right = on_cpu(c);
    expect_alike(on_gpu(draw, c, *ConvolutionKernels::kCuda, at::kDouble), right, 1e-12);
    expect_alike(on_gpu(draw, c, *ConvolutionKernels::kCuda, at::kFloat), right, 1e-5);
    expect_alike(on_gpu(draw, c, ConvolutionKernels::kAten, at::kFloat), right, 1e-5);
    const Case rounded = rounded_to_bf16(c);
    expect_rounded(on_gpu(draw, rounded, *ConvolutionKernels::kCuda, at::kBFloat16),
                   on_cpu(rounded));
  }
}

TEST(GpuConvolution, WindowsThatFit) { expect_same_numbers_as_cpu(24, Ends::kExact); }
TEST(GpuConvolution, PaddedOnAllSides) { expect_same_numbers_as_cpu(24, Ends::kPadded); }
TEST(GpuConvolution, PartsOfTheFineImage) { expect_same_numbers_as_cpu(36, Ends::kAnywhere); }

// More taps than a tile of the weight holds, and channels that leave tiles half full.
TEST(GpuConvolution, LargeWindows) {
  const StrictFloat32 strict;
  for (const int64_t kernel : {7, 9, 21}) {
    SCOPED_TRACE(kernel);
    Draw draw(static_cast<uint64_t>(kernel));
    Case c;
    c.shape = {.stride = {1, 1}, .dilation = {1, 1}};
    c.fine = draw.uniform({1, 35, 24, 26}, -1, 1);
    c.weight = draw.uniform({41, 35, kernel, kernel}, -1, 1);
    c.fine_bias = draw.uniform({35}, -1, 1);
    c.coarse_bias = draw.uniform({41}, -1, 1);
    c.coarse = draw.uniform({1, 41, 25 - kernel, 27 - kernel}, -1, 1);
    const Results right = on_cpu(c);
    expect_alike(on_gpu(draw, c, *ConvolutionKernels::kCuda, at::kFloat), right, 2e-5);
    const Case rounded = rounded_to_bf16(c);
    expect_rounded(on_gpu(draw, rounded, *ConvolutionKernels::kCuda, at::kBFloat16),
                   on_cpu(rounded));
  }
}

TEST(GpuConvolution, WithoutPixels) {
  const ConvolutionShape shape{.stride = {1, 2}, .dilation = {1, 1}};
  const auto real = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const at::Tensor weight = at::ones({3, 2, 2, 2}, real);
  const at::Tensor bias = at::arange(3, real), fine_bias = at::arange(2, real);
  const ConvolutionKernels& table = *ConvolutionKernels::kCuda;
  const at::Tensor coarse = at::full({1, 3, 4, 5}, 7, real);
  table.convolve(shape, at::empty({1, 2, 0, 9}, real), weight, bias, coarse, {});
  EXPECT_TRUE(coarse.equal(bias.view({1, 3, 1, 1}).expand_as(coarse)));
  const at::Tensor fine = at::full({1, 2, 5, 6}, 7, real);
  table.convolve_transposed(shape, at::empty({1, 3, 0, 3}, real), weight, fine_bias, fine, {});
  EXPECT_TRUE(fine.equal(fine_bias.view({1, 2, 1, 1}).expand_as(fine)));
  table.convolve(shape, at::empty({0, 2, 5, 6}, real), weight, bias, at::empty({0, 3, 4, 3}, real),
                 {});
  const at::Tensor gradient = at::ones_like(weight);
  table.add_convolution_weight_gradient(shape, at::empty({1, 2, 0, 9}, real), coarse, gradient, {});
  EXPECT_TRUE(gradient.eq(1).all().item<bool>());
}

// After a step that warms up, nothing waits for the host and nothing is chosen anew.
TEST(GpuConvolution, InAGraph) {
  Draw draw(5);
  Case c = draw_case(draw, 2, Ends::kPadded);
  const Placed fine(draw, c.fine, at::kBFloat16, Lying::kDense);
  const Placed coarse(draw, c.coarse.sizes().vec(), at::kBFloat16, Lying::kInside);
  const Placed back(draw, c.fine.sizes().vec(), at::kBFloat16, Lying::kDense);
  const at::Tensor weight = run_on_gpu(draw, c.weight, at::kFloat);
  const at::Tensor bias = run_on_gpu(draw, c.coarse_bias, at::kFloat);
  const at::Tensor gradient = at::zeros_like(weight);
  const auto step = [&] {
    const ConvolutionKernels& table = *ConvolutionKernels::kCuda;
    table.convolve(c.shape, fine, weight, bias, coarse, {});
    table.convolve_transposed(c.shape, coarse, weight, {}, back, {});
    table.add_convolution_weight_gradient(c.shape, fine, coarse, gradient, {});
  };
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  step();
  const at::Tensor once = gradient.clone(), expected = back.view().cpu().to(at::kDouble);
  stream.synchronize();
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  step();
  graph.capture_end();
  gradient.zero_();
  back.view().zero_();
  graph.replay();
  graph.replay();
  stream.synchronize();
  EXPECT_LE(distance(back, expected), 1e-2);
  EXPECT_LE(distance(gradient, 2 * once.cpu().to(at::kDouble)), 1e-2);
}

}  // namespace
}  // namespace tessera::gpu_test
