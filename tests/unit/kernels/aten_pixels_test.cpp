// Kernels made of ATen's functions beside the loops on the CPU: families that look at single
// elements, or at the channels of a pixel.

#include "tests/unit/kernels/tables.h"

#include <cmath>
#include <utility>

#include "tessera/kernels/channel_reduction.h"
#include "tessera/kernels/classes.h"
#include "tessera/kernels/cross_entropy.h"
#include "tessera/kernels/dense_tiles.h"
#include "tessera/kernels/dropout.h"
#include "tessera/kernels/label_sum.h"
#include "tessera/kernels/pick_labels.h"
#include "tessera/kernels/prelu.h"
#include "tessera/kernels/softmax.h"
#include "tessera/kernels/space_sum.h"

namespace tessera::aten_pixels_test {
namespace {

TEST(AtenKernels, AreTakenWhereASwitchSaysSo) {
  const auto tile_size = [](int64_t numel) {
    int64_t largest = 0;
    const at::Tensor x = at::ones({numel}), y = at::empty({numel});
    in_dense_tiles({x}, y, [&](const Tiles& in, at::Tensor& out) {
      largest = std::max(largest, in[0].numel());
      out.copy_(in[0]);
    });
    return largest;
  };
  constexpr int64_t kLong = 20'000;  // more than a tile on the CPU
  EXPECT_LT(tile_size(kLong), kLong);
  {
    const LibraryKernels outer;
    const LibraryKernels inner;
    EXPECT_EQ(tile_size(kLong), kLong);
  }
  EXPECT_LT(tile_size(kLong), kLong);
}

TEST(AtenKernels, Softmax) {
  for_many_draws(60, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, draw.between(0, 4) ? num_spatial : 0);
    const at::Tensor x = draw.between(0, 3)
                             ? strided_copy(draw, draw.uniform(shape, -50, 50).to(type))
                             : wild_numbers(draw, shape, type);
    const at::Tensor dy = any_numbers(draw, shape, type);
    for (const SoftmaxForm form : {SoftmaxForm::kSoftmax, SoftmaxForm::kLogSoftmax}) {
      const Target y(draw, shape, type), right(draw, shape, type);
      SoftmaxKernels::kAten.softmax_channels(form, x, y);
      SoftmaxKernels::kCpu.softmax_channels(form, x, right);
      expect_near(y, right, rounding_of(type));
      const Target dx(draw, shape, type), right_dx(draw, shape, type);
      SoftmaxKernels::kAten.softmax_channels_gradient(form, right, dy, dx);
      SoftmaxKernels::kCpu.softmax_channels_gradient(form, right, dy, right_dx);
      expect_near(dx, right_dx, rounding_of(type));
    }
  });
}

DropoutMask draw_mask(Draw& draw, const Shape& shape) {
  const double probabilities[] = {0, 0.25, 0.5, 1.0 / 3, 0.999, 1};
  DropoutMask mask{RandomKey(static_cast<uint64_t>(draw.between(0, 1 << 30))).with("mask"),
                   {},
                   probabilities[draw.between(0, 5)],
                   draw.between(0, int64_t{1} << 40),
                   {}};
  int64_t stride = draw.between(1, 1000);
  for (size_t axis = shape.size(); axis-- > 0;) {
    mask.strides.insert(mask.strides.begin(), draw.between(0, 3) ? stride : 0);
    stride *= shape[axis] + draw.between(0, 3);
  }
  return mask;
}

// The same fates to the bit, wherever a piece begins and whatever shares a draw.
TEST(AtenKernels, Dropout) {
  for_many_draws(100, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, num_spatial, 13);
    const DropoutMask mask = draw_mask(draw, shape);
    const at::Tensor x =
        draw.between(0, 1) ? any_numbers(draw, shape, type) : wild_numbers(draw, shape, type);
    const Fate kept{1.7, draw.between(0, 1) * 0.3}, dropped{0, draw.between(0, 1) * -1.1};
    const Target y(draw, shape, type), right(draw, shape, type);
    DropoutKernels::kAten.apply_dropout(mask, kept, dropped, x, y);
    DropoutKernels::kCpu.apply_dropout(mask, kept, dropped, x, right);
    expect_same(y, right);
    // The state in a tensor is the one that is taken.
    DropoutMask other = mask;
    other.key = RandomKey(7);
    other.state = at::full({}, static_cast<int64_t>(mask.key.state()), at::kLong);
    for (const DropoutKernels& table : {DropoutKernels::kAten, DropoutKernels::kCpu}) {
      y.view().zero_();
      table.apply_dropout(other, kept, dropped, x, y);
      expect_same(y, right);
    }
  });
}

TEST(AtenKernels, LabelSums) {
  for_many_draws(100, {at::kDouble}, [](Draw& draw, at::ScalarType, int64_t num_spatial) {
    Shape shape = draw_image(draw, num_spatial, 9);
    const int64_t classes = shape[1], odd = draw.between(0, 3);
    shape.erase(shape.begin() + 1);
    at::Tensor labels = draw.labels(shape, classes);
    labels.masked_fill_(draw.uniform(shape, 0, 1) < 0.2, 255);
    if (odd == 0) labels.flatten()[draw.between(0, labels.numel() - 1)] = classes;
    if (odd == 1) labels.flatten()[draw.between(0, labels.numel() - 1)] = -5;
    labels = strided_copy(draw, labels);
    std::vector<double> weights;
    for (int64_t k = 0; k < classes && odd != 2; ++k)
      weights.push_back(static_cast<double>(draw.between(0, 8)) / 4);
    const auto numbers = [&](const LabelSumKernels& table) {
      const at::Tensor sum = at::full({}, -1, at::kDouble), illegal = at::full({}, 77, at::kLong);
      table.sum_over_labels(labels, classes, 255, weights, sum, illegal);
      return std::pair(sum.item<double>(), illegal.item<int64_t>());
    };
    const auto [sum, illegal] = numbers(LabelSumKernels::kAten);
    const auto [right_sum, right_illegal] = numbers(LabelSumKernels::kCpu);
    EXPECT_EQ(illegal, odd == 0 ? classes : odd == 1 ? -5 : 77);
    EXPECT_EQ(right_illegal, illegal);
    EXPECT_EQ(std::isnan(right_sum), odd < 2);
    if (odd < 2)
      EXPECT_TRUE(std::isnan(sum));
    else
      EXPECT_EQ(sum, right_sum);
  });
}

TEST(AtenKernels, LabelsThatAreNotLegalDoNotCount) {
  for_many_draws(40, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, num_spatial);
    Shape pixels = shape;
    pixels.erase(pixels.begin() + 1);
    const at::Tensor legal = draw.labels(pixels, shape[1]);
    const at::Tensor odd = draw.uniform(pixels, 0, 1) < 0.3;
    const at::Tensor x = any_numbers(draw, shape, type);
    const CrossEntropyTerms terms{.label_smoothing = 0.1 * static_cast<double>(draw.between(0, 1)),
                                  .ignore_index = -100};
    const auto results = [&](int64_t instead) {
      const at::Tensor labels = strided_copy(draw, legal.masked_fill(odd, instead));
      const Target gradient(draw, shape, type);
      CrossEntropyKernels::kAten.cross_entropy_gradient(terms, at::full({}, 2.0, at::kDouble), x,
                                                        labels, gradient);
      return std::pair(CrossEntropyKernels::kAten.cross_entropy_sum(terms, x, labels),
                       gradient.view().clone());
    };
    const auto [right_sum, right_gradient] = results(-100);
    for (const int64_t label : {int64_t{-1}, shape[1], int64_t{1} << 40}) {
      const auto [sum, gradient] = results(label);
      expect_near(sum, right_sum, rounding_of(type));
      expect_same(gradient, right_gradient);
    }
  });
}

TEST(AtenKernels, Prelu) {
  for_many_draws(60, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, draw.between(0, 4) ? num_spatial : 0);
    const bool wild = draw.between(0, 3) == 0;
    const at::Tensor x = wild ? wild_numbers(draw, shape, type) : any_numbers(draw, shape, type);
    const at::Tensor value = any_numbers(draw, shape, type);
    const at::Tensor slopes = draw.between(0, 1)
                                  ? draw.uniform({shape[1]}, -1, 1).to(type)
                                  : draw.uniform({1}, -1, 1).to(type).expand(shape[1]);
    const Target y(draw, shape, type), right(draw, shape, type);
    PreluKernels::kAten.apply_slopes(x, value, slopes, y);
    PreluKernels::kCpu.apply_slopes(x, value, slopes, right);
    expect_same(y, right);
    expect_near(PreluKernels::kAten.slope_gradients(x, value),
                PreluKernels::kCpu.slope_gradients(x, value), 1e-12);
  });
}

TEST(AtenKernels, ChannelReductions) {
  for_many_draws(60, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, num_spatial);
    Shape one = shape;
    one[1] = 1;
    const at::Tensor x = wild_numbers(draw, shape, type);
    const Target sum(draw, one, type), right_sum(draw, one, type);
    ChannelReductionKernels::kAten.sum_channels(x, 3, sum);
    ChannelReductionKernels::kCpu.sum_channels(x, 3, right_sum);
    expect_near(sum, right_sum, rounding_of(type));
    const Target best(draw, one, type), right_best(draw, one, type);
    const at::ScalarType code = draw.between(0, 1) ? at::kByte : at::kInt;
    const at::Tensor choices = at::empty({best.view().numel()}, code);
    const at::Tensor right_choices = at::empty_like(choices);
    ChannelReductionKernels::kAten.channel_maxima(x, best, choices);
    ChannelReductionKernels::kCpu.channel_maxima(x, right_best, right_choices);
    expect_same(best, right_best);
    EXPECT_TRUE(choices.equal(right_choices));
    const at::Tensor dy = wild_numbers(draw, one, type);
    const Target dx(draw, shape, type), right_dx(draw, shape, type);
    ChannelReductionKernels::kAten.channel_maxima_gradient(dy, choices, dx);
    ChannelReductionKernels::kCpu.channel_maxima_gradient(dy, choices, right_dx);
    expect_same(dx, right_dx);
  });
}

TEST(AtenKernels, SumsOverSpace) {
  for_many_draws(60, {at::kDouble, at::kFloat, at::kBFloat16},
                 [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
                   const Shape shape = draw_image(draw, num_spatial, 20);
                   const at::Tensor x = any_numbers(draw, shape, type);
                   const at::ScalarType wide = type == at::kBFloat16 ? at::kFloat : type;
                   const Target sums(draw, {shape[0], shape[1]}, wide);
                   const Target right(draw, {shape[0], shape[1]}, wide);
                   SpaceSumKernels::kAten.sum_space(x, 0.25, sums);
                   SpaceSumKernels::kCpu.sum_space(x, 0.25, right);
                   expect_near(sums, right, wide == at::kDouble ? 1e-12 : 1e-6);
                 });
}

TEST(AtenKernels, Classes) {
  for_many_draws(60, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    Shape shape = draw_image(draw, draw.between(0, 4) ? num_spatial : 0);
    if (draw.between(0, 5) == 0) shape.back() = shape.size() > 2 ? 0 : shape.back();
    const at::Tensor scores = wild_numbers(draw, shape, type);
    expect_same(ClassKernels::kAten.classes_with_largest_score(scores),
                ClassKernels::kCpu.classes_with_largest_score(scores));
  });
}

TEST(AtenKernels, PickLabels) {
  for_many_draws(60, {at::kLong}, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    Shape shape{draw.between(1, 3)}, picked{shape[0]};
    std::vector<std::vector<int64_t>> places(static_cast<size_t>(1 + num_spatial));
    for (int64_t n = 0; n < shape[0]; ++n) places[0].push_back(n);
    for (int64_t axis = 1; axis <= num_spatial; ++axis) {
      shape.push_back(draw.between(1, 9));
      picked.push_back(draw.between(1, 9));
      for (int64_t i = 0; i < picked.back(); ++i)
        places[static_cast<size_t>(axis)].push_back(draw.between(0, shape.back() - 1));
    }
    const at::Tensor from = strided_copy(draw, draw.labels(shape, 1000));
    const Target to(draw, picked, type), right(draw, picked, type);
    LabelPickKernels::kAten.pick_labels(from, places, to);
    LabelPickKernels::kCpu.pick_labels(from, places, right);
    expect_same(to, right);
  });
}

TEST(AtenKernels, DenseTiles) {
  for_many_draws(40, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const Shape shape = draw_image(draw, num_spatial);
    const at::Tensor x = any_numbers(draw, shape, type), dy = any_numbers(draw, shape, type);
    const TileKernel kernel = [](const Tiles& in, at::Tensor& out) {
      EXPECT_EQ(out.dim(), 1);
      at::gelu_backward_out(out, in[1], in[0]);
    };
    const Target dx(draw, shape, type), right(draw, shape, type);
    DenseTileKernels::kAten.in_dense_tiles({x, dy}, dx, kernel);
    DenseTileKernels::kCpu.in_dense_tiles({x, dy}, right, kernel);
    expect_near(dx, right, rounding_of(type));
  });
}

}  // namespace
}  // namespace tessera::aten_pixels_test
