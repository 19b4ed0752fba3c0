// The convolution kernels beside the library's, in float64 to the last digits and in float32 within
// what rounding explains: all methods, any kernel, stride, dilation and groups, views with strides
// of their own, pieces of the fine image, and any amount of scratch.

#include "tessera/kernels/convolution.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <optional>

#include "tessera/graph/number_type.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::convolution_kernel_test {
namespace {

struct Case {
  ConvolutionShape shape;
  at::Tensor fine, weight, bias, coarse;  // float64; the coarse one is any gradient
};

Case draw_case(Draw& draw, int64_t num_spatial, bool square) {
  Case drawn;
  ConvolutionShape& shape = drawn.shape;
  shape.groups = draw.between(1, 2);
  const int64_t most = num_spatial == 3 ? 12 : 40;
  const int64_t in = draw.between(1, most), out = draw.between(1, most), batch = draw.between(1, 3);
  std::vector<int64_t> fine{batch, shape.groups * in}, weight{shape.groups * out, in};
  std::vector<int64_t> coarse{batch, shape.groups * out};
  for (int64_t axis = 0; axis < num_spatial; ++axis) {
    const bool is_depth = axis + 2 < num_spatial;
    const int64_t kernel = !square ? draw.between(1, 4) : is_depth ? draw.between(1, 3) : 3;
    shape.stride.push_back(square ? 1 : draw.between(1, 3));
    shape.dilation.push_back(square ? 1 : draw.between(1, 2));
    const int64_t reach = (kernel - 1) * shape.dilation.back() + 1;
    // Some rows are longer than a register of tiles.
    const bool is_wide = axis + 1 == num_spatial && draw.between(0, 3) == 0;
    const int64_t size = reach + draw.between(0, is_depth ? 4 : is_wide ? 150 : 19);
    fine.push_back(size);
    weight.push_back(kernel);
    coarse.push_back((size - reach) / shape.stride.back() + 1);
  }
  drawn.fine = draw.uniform(fine, -1, 1);
  drawn.weight = draw.uniform(weight, -1, 1);
  drawn.bias = draw.uniform({weight[0]}, -1, 1);
  drawn.coarse = draw.uniform(coarse, -1, 1);
  return drawn;
}

/// Groups of so few channels that there is no product of matrices; images that are narrower than a
/// register, and some that are cut into bands.
Case draw_thin_case(Draw& draw, int64_t num_spatial) {
  Case drawn;
  ConvolutionShape& shape = drawn.shape;
  shape.groups = draw.between(2, 6);
  const int64_t in = draw.between(1, 3), out = draw.between(1, 4), batch = draw.between(1, 2);
  std::vector<int64_t> fine{batch, shape.groups * in}, weight{shape.groups * out, in};
  std::vector<int64_t> coarse{batch, shape.groups * out};
  const bool square = draw.between(0, 1) == 0, large = draw.between(0, 4) == 0;
  const int64_t side = draw.between(1, 3) * 2 + 1;
  for (int64_t axis = 0; axis < num_spatial; ++axis) {
    const bool is_depth = axis + 2 < num_spatial;
    const int64_t kernel = square && !is_depth ? side : draw.between(1, is_depth ? 3 : 7);
    shape.stride.push_back(square ? draw.between(1, 2) : draw.between(1, 3));
    shape.dilation.push_back(square ? 1 : draw.between(1, 3));
    const int64_t reach = (kernel - 1) * shape.dilation.back() + 1;
    const int64_t size = reach + draw.between(0, is_depth ? 3 : large ? 150 : 40);
    fine.push_back(size);
    weight.push_back(kernel);
    coarse.push_back((size - reach) / shape.stride.back() + 1);
  }
  drawn.fine = draw.uniform(fine, -1, 1);
  drawn.weight = draw.uniform(weight, -1, 1);
  drawn.bias = draw.uniform({weight[0]}, -1, 1);
  drawn.coarse = draw.uniform(coarse, -1, 1);
  return drawn;
}

struct Results {
  at::Tensor coarse, fine, weight_gradient;
};

Results by_library(const Case& c) {
  const std::vector<int64_t> none(c.shape.stride.size(), 0);
  const auto [fine, weight, bias] = at::convolution_backward(
      c.coarse, c.fine, c.weight, at::IntArrayRef(c.weight.size(0)), c.shape.stride, none,
      c.shape.dilation, false, none, c.shape.groups, {true, true, false});
  return {at::convolution(c.fine, c.weight, c.bias, c.shape.stride, none, c.shape.dilation, false,
                          none, c.shape.groups),
          fine, weight};
}

/// The same numbers in a view of strides of its own.
at::Tensor somewhere(Draw& draw, const at::Tensor& tensor, at::ScalarType type) {
  return strided_copy(draw, tensor.to(type));
}

at::Tensor place_for(Draw& draw, const at::Tensor& like, at::ScalarType type) {
  return surrounded(draw, like.sizes().vec(), type).view;
}

Results by_kernels(Draw& draw, const Case& c, ConvolutionMethod method, at::ScalarType type) {
  ConvolutionShape shape = c.shape;
  shape.method = method;
  const at::Tensor fine = somewhere(draw, c.fine, type), coarse = somewhere(draw, c.coarse, type);
  const at::Tensor weight = c.weight.to(wide(type)), bias = c.bias.to(wide(type));
  const auto scratch = [&](const ScratchBytes& wish) {
    return at::full({draw.between(wish.least, wish.most)}, 0xff, at::kByte);
  };
  const ScratchBytes sums = convolution_scratch_bytes(shape, weight.sizes(), type);
  Results results{place_for(draw, c.coarse, type), place_for(draw, c.fine, type),
                  at::zeros(weight.sizes(), weight.options())};
  convolve(shape, fine, weight, bias, results.coarse, scratch(sums));
  convolve_transposed(shape, coarse, weight, {}, results.fine, scratch(sums));
  add_convolution_weight_gradient(
      shape, fine, coarse, results.weight_gradient,
      scratch(convolution_gradient_scratch_bytes(shape, weight.sizes(), coarse.sizes(), type)));
  return results;
}

/// Enough for all three.
at::Tensor all_scratch(const Case& c) {
  const auto most = std::max(
      convolution_scratch_bytes(c.shape, c.weight.sizes(), at::kDouble).most,
      convolution_gradient_scratch_bytes(c.shape, c.weight.sizes(), c.coarse.sizes(), at::kDouble)
          .most);
  return at::empty({most}, at::kByte);
}

double distance(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).abs().max() / expected.abs().max().clamp_min(1e-3))
      .item<double>();
}

void expect_alike(const Results& found, const Results& expected, double most) {
  EXPECT_LE(distance(found.coarse, expected.coarse), most);
  EXPECT_LE(distance(found.fine, expected.fine), most);
  EXPECT_LE(distance(found.weight_gradient, expected.weight_gradient), most);
}

Case rounded_to_bf16(const Case& c) {
  const auto rounded = [](const at::Tensor& numbers) {
    return numbers.to(at::kBFloat16).to(at::kDouble);
  };
  return {c.shape, rounded(c.fine), rounded(c.weight), c.bias, rounded(c.coarse)};
}

/// Images are rounded once, when they are written; gradients of weights are float32.
void expect_one_rounding_to_bf16(Draw& draw, const Case& any, ConvolutionMethod method) {
  if (!multiplies_bf16(any.shape, at::kCPU)) return;
  const Case c = rounded_to_bf16(any);
  const Results found = by_kernels(draw, c, method, at::kBFloat16), expected = by_library(c);
  constexpr double kHalfOfLastBit = 1.0 / 256;
  const auto expect_near = [](const at::Tensor& image, const at::Tensor& right) {
    const at::Tensor apart = (image.to(at::kDouble) - right).abs();
    const at::Tensor allowed = right.abs() * kHalfOfLastBit + right.abs().max() * 1e-5;
    EXPECT_TRUE((apart <= allowed).all().item<bool>());
  };
  expect_near(found.coarse, expected.coarse);
  expect_near(found.fine, expected.fine);
  EXPECT_LE(distance(found.weight_gradient, expected.weight_gradient), 1e-4);
}

TEST(ConvolutionKernels, AnyShape) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Case c = draw_case(draw, 1 + static_cast<int64_t>(seed % 3), /*square=*/false);
    const Results expected = by_library(c);
    expect_alike(by_kernels(draw, c, ConvolutionMethod::kAuto, at::kDouble), expected, 1e-13);
    expect_alike(by_kernels(draw, c, ConvolutionMethod::kAuto, at::kFloat), expected, 1e-5);
    expect_one_rounding_to_bf16(draw, c, ConvolutionMethod::kAuto);
  }
}

// Tiles that reach over the image's end, few and many of them, and one or several slices of depth.
TEST(ConvolutionKernels, SquareKernelsByAllMethods) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Case c = draw_case(draw, 2 + static_cast<int64_t>(seed % 2), /*square=*/true);
    const Results expected = by_library(c);
    for (const ConvolutionMethod method :
         {ConvolutionMethod::kAuto, ConvolutionMethod::kDirect, ConvolutionMethod::kWinograd}) {
      expect_alike(by_kernels(draw, c, method, at::kDouble), expected, 1e-12);
      expect_alike(by_kernels(draw, c, method, at::kFloat), expected, 1e-4);
      expect_one_rounding_to_bf16(draw, c, method);
    }
  }
}

// Channels and tiles around what fills one register, and two.
TEST(ConvolutionKernels, TilesOfOneRegister) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const int64_t channels : {8, 9, 15, 16, 17, 33})
      for (const int64_t tiles : {4, 7, 8, 9, 15, 16, 17, 32, 33}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << tiles << " tiles");
        Draw draw(static_cast<uint64_t>(channels * 100 + tiles));
        Case c;
        c.shape = {.stride = {1, 1}, .dilation = {1, 1}};
        c.fine = draw.uniform({1, channels, 6, 4 * tiles + 1}, -1, 1);
        c.weight = draw.uniform({11, channels, 3, 3}, -1, 1);
        c.bias = draw.uniform({11}, -1, 1);
        c.coarse = draw.uniform({1, 11, 4, 4 * tiles - 1}, -1, 1);
        expect_alike(by_kernels(draw, c, ConvolutionMethod::kWinograd, type), by_library(c),
                     type == at::kFloat ? 1e-4 : 1e-12);
      }
}

TEST(ConvolutionKernels, GroupsOfFewChannels) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const Case c = draw_thin_case(draw, 1 + static_cast<int64_t>(seed % 3));
    const Results expected = by_library(c);
    expect_alike(by_kernels(draw, c, ConvolutionMethod::kAuto, at::kDouble), expected, 1e-13);
    expect_alike(by_kernels(draw, c, ConvolutionMethod::kAuto, at::kFloat), expected, 1e-5);
  }
}

// One row that is wider than a block of columns.
TEST(ConvolutionKernels, LongSignalsByChannel) {
  for (const int64_t stride : {1, 2}) {
    Draw draw(7);
    Case c;
    c.shape = {.stride = {stride}, .dilation = {1}, .groups = 3};
    c.fine = draw.uniform({1, 3, 3000}, -1, 1);
    c.weight = draw.uniform({3, 1, 9}, -1, 1);
    c.bias = draw.uniform({3}, -1, 1);
    c.coarse = draw.uniform({1, 3, (3000 - 9) / stride + 1}, -1, 1);
    expect_alike(by_kernels(draw, c, ConvolutionMethod::kAuto, at::kDouble), by_library(c), 1e-13);
  }
}

// What a window reads outside of the fine image is zero, and what no window reaches has its bias.
TEST(ConvolutionKernels, PartsOfTheFineImage) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    Case c = seed % 3 == 0 ? draw_thin_case(draw, 2)
                           : draw_case(draw, 2, /*square=*/draw.between(0, 1) == 0);
    const Results whole = by_library(c);
    const int64_t begin = draw.between(0, c.fine.size(3) - 1);
    const int64_t size = draw.between(1, c.fine.size(3) - begin);
    const auto part = [&](const at::Tensor& image) { return image.narrow(3, begin, size); };
    ConvolutionShape shape = c.shape;
    shape.fine_begin = {0, begin};
    const at::Tensor scratch = all_scratch(c);

    const at::Tensor fine = place_for(draw, part(c.fine), at::kDouble);
    convolve_transposed(shape, c.coarse, c.weight, {}, fine, scratch);
    EXPECT_LE(distance(fine, part(whole.fine)), 1e-12);

    Case with_zeros = c;
    with_zeros.fine = at::zeros_like(c.fine);
    part(with_zeros.fine).copy_(part(c.fine));
    const Results expected = by_library(with_zeros);
    const at::Tensor coarse = place_for(draw, c.coarse, at::kDouble);
    convolve(shape, part(c.fine), c.weight, c.bias, coarse, scratch);
    EXPECT_LE(distance(coarse, expected.coarse), 1e-12);
    const at::Tensor weight = at::zeros_like(c.weight);
    add_convolution_weight_gradient(shape, part(c.fine), c.coarse, weight, scratch);
    EXPECT_LE(distance(weight, expected.weight_gradient), 1e-12);
  }
}

/// Any part of a fine image, which may also begin before the first window and end after the last.
struct PartCase {
  ConvolutionShape shape;
  at::Tensor fine, weight, fine_bias, coarse_bias, coarse;  // float64
};

PartCase draw_part(Draw& draw, int64_t num_spatial) {
  const Case whole = draw_case(draw, num_spatial, /*square=*/false);
  PartCase part{whole.shape, {},          whole.weight, draw.uniform({whole.fine.size(1)}, -1, 1),
                whole.bias,  whole.coarse};
  std::vector<int64_t> sizes{whole.fine.size(0), whole.fine.size(1)};
  for (int64_t axis = 2; axis < whole.fine.dim(); ++axis) {
    part.shape.fine_begin.push_back(draw.between(-2, whole.fine.size(axis) - 1));
    sizes.push_back(draw.between(1, whole.fine.size(axis) - part.shape.fine_begin.back() + 2));
  }
  part.fine = draw.uniform(sizes, -1, 1);
  return part;
}

/// LibTorch before 2.0 has no transposed convolution of such images on CPUs.
constexpr bool kTransposesNarrow = TORCH_VERSION_MAJOR >= 2;

Results by_table(Draw& draw, const PartCase& c, const ConvolutionKernels& table,
                 at::ScalarType type) {
  const at::Tensor fine = somewhere(draw, c.fine, type), coarse = somewhere(draw, c.coarse, type);
  const at::Tensor weight = c.weight.to(wide(type));
  const at::Tensor scratch = at::empty({int64_t{1} << 20}, at::kByte);
  Results results{place_for(draw, c.coarse, type), place_for(draw, c.fine, type),
                  at::ones(weight.sizes(), weight.options())};
  table.convolve(c.shape, fine, weight, c.coarse_bias.to(wide(type)), results.coarse, scratch);
  if (type != at::kBFloat16 || kTransposesNarrow)
    table.convolve_transposed(c.shape, coarse, weight, c.fine_bias.to(wide(type)), results.fine,
                              scratch);
  table.add_convolution_weight_gradient(c.shape, fine, coarse, results.weight_gradient, scratch);
  return results;
}

Results in_double(const Results& results) {
  return {results.coarse.to(at::kDouble), results.fine.to(at::kDouble),
          results.weight_gradient.to(at::kDouble)};
}

// What builds without wide registers and other devices run: ATen behind the same three functions.
TEST(ConvolutionKernels, ByTheLibrary) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const PartCase c = draw_part(draw, 1 + static_cast<int64_t>(seed % 3));
    const Results right = by_table(draw, c, ConvolutionKernels::kCpu, at::kDouble);
    const auto by_aten = [&](at::ScalarType type) {
      return by_table(draw, c, ConvolutionKernels::kAten, type);
    };
    expect_alike(by_aten(at::kDouble), right, 1e-12);
    expect_alike(by_aten(at::kFloat), in_double(right), 1e-5);
    const Results narrow = by_aten(at::kBFloat16);
    EXPECT_LE(distance(narrow.coarse, right.coarse), 0.03);
    EXPECT_LE(distance(narrow.weight_gradient, right.weight_gradient), 0.03);
    if (kTransposesNarrow) {
      EXPECT_LE(distance(narrow.fine, right.fine), 0.03);
    }
  }
}

// No image on one side: there the bias alone, and nothing for the weight.
TEST(ConvolutionKernels, WithoutPixels) {
  const ConvolutionShape shape{.stride = {1, 2}, .dilation = {1, 1}};
  const at::Tensor weight = at::ones({3, 2, 2, 2}, at::kDouble);
  const at::Tensor bias = at::arange(3, at::kDouble), fine_bias = at::arange(2, at::kDouble);
  const at::Tensor scratch = at::empty({1 << 16}, at::kByte);
  for (const ConvolutionKernels* table : {&ConvolutionKernels::kCpu, &ConvolutionKernels::kAten}) {
    const at::Tensor coarse = at::full({1, 3, 4, 5}, 7, at::kDouble);
    table->convolve(shape, at::empty({1, 2, 0, 9}, at::kDouble), weight, bias, coarse, scratch);
    EXPECT_TRUE(coarse.equal(bias.view({1, 3, 1, 1}).expand_as(coarse)));
    const at::Tensor fine = at::full({1, 2, 5, 6}, 7, at::kDouble);
    table->convolve_transposed(shape, at::empty({1, 3, 0, 3}, at::kDouble), weight, fine_bias, fine,
                               scratch);
    EXPECT_TRUE(fine.equal(fine_bias.view({1, 2, 1, 1}).expand_as(fine)));
    const at::Tensor gradient = at::ones_like(weight);
    table->add_convolution_weight_gradient(shape, at::empty({1, 2, 0, 9}, at::kDouble), coarse,
                                           gradient, scratch);
    EXPECT_TRUE(gradient.equal(at::ones_like(weight)));
  }
}

TEST(ConvolutionKernels, ThreadsChangeNothing) {
  const int before = at::get_num_threads();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    const Case c = seed % 3 == 0 ? draw_thin_case(draw, 2)
                                 : draw_case(draw, 2, /*square=*/draw.between(0, 1) == 0);
    const Draw same = draw;
    std::optional<Results> first;
    for (int threads : {1, 2, 5}) {
      at::set_num_threads(threads);
      Draw again = same;
      const Results results = by_kernels(again, c, ConvolutionMethod::kAuto, at::kFloat);
      if (!first) first = results;
      EXPECT_TRUE(at::equal(results.coarse, first->coarse));
      EXPECT_TRUE(at::equal(results.fine, first->fine));
      EXPECT_TRUE(at::equal(results.weight_gradient, first->weight_gradient));
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace tessera::convolution_kernel_test
