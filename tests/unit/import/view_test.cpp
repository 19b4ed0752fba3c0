// How code sees values and weights: views, the form in which a weight meets a value, and the memory
// that views of computed weights share.

#include "tessera/import/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tessera/import/weight_form.h"
#include "tessera/import/weight_memory.h"

namespace tessera::view_test {
namespace {

const Shape kImage{2, 12, 5, 7};

TEST(View, TakesChannelsApartAndTogether) {
  const CodeView image = CodeView::plain(kImage);
  const std::optional<CodeView> groups = image.reshaped({2, 3, 4, 5, 7});
  ASSERT_TRUE(groups);
  EXPECT_EQ((*groups)[1], (ViewDigits{{1, 4, 3}}));
  EXPECT_EQ((*groups)[2], (ViewDigits{{1, 1, 4}}));
  EXPECT_EQ(groups->reshaped(kImage), image);
  const CodeView swapped = groups->permuted({0, 2, 1, 3, 4});
  const std::optional<CodeView> shuffled = swapped.reshaped(kImage);
  ASSERT_TRUE(shuffled);
  EXPECT_FALSE(shuffled->is_plain(kImage));
  EXPECT_EQ((*shuffled)[1], (ViewDigits{{1, 1, 4}, {1, 4, 3}}));
}

TEST(View, PixelsAsTokensAndBack) {
  const CodeView tokens = CodeView::plain(kImage).reshaped({2, 12, 35})->permuted({0, 2, 1});
  EXPECT_EQ(tokens[1], (ViewDigits{{2, 1, 5}, {3, 1, 7}}));
  EXPECT_EQ(tokens.permuted({0, 2, 1}).reshaped(kImage), CodeView::plain(kImage));
}

TEST(View, RefusesAnAxisThatBeginsInTheMiddleOfAnother) {
  const CodeView image = CodeView::plain({2, 6, 5});
  EXPECT_FALSE(image.reshaped({2, 4, 15 / 2}));
  EXPECT_FALSE(CodeView::plain({2, 6, 4}).permuted({0, 2, 1}).reshaped({2, 3, 8}));
  EXPECT_FALSE(image.reshaped({2, 6, 5, 2}));
}

TEST(View, UnitAxesComeAndGo) {
  const CodeView pooled = CodeView::plain({2, 12, 1, 1});
  EXPECT_EQ(pooled.reshaped({2, 12}), CodeView::plain({2, 12}));
  EXPECT_TRUE(pooled.reshaped({2, 12})->reshaped({2, 12, 1, 1})->is_plain({2, 12, 1, 1}));
  EXPECT_EQ(pooled.without_axes({false, false, true, false}).shape(), (Shape{2, 12, 1}));
}

TEST(View, KnowsTheOrderOfAxes) {
  const CodeView last = CodeView::plain(kImage).permuted({0, 2, 3, 1});
  EXPECT_EQ(last.order(kImage), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_FALSE(CodeView::plain(kImage).reshaped({2, 12, 35})->order(kImage));
  const Shape unit{2, 12, 1, 7};
  EXPECT_TRUE(CodeView::plain(unit).permuted({0, 2, 3, 1}).has_order({0, 2, 3, 1}, unit));
}

TEST(View, StretchesAxesOfOne) {
  const CodeView gate = CodeView::plain({2, 12, 1, 1});
  const std::optional<CodeView> wide = gate.stretched(kImage);
  ASSERT_TRUE(wide);
  EXPECT_TRUE(wide->is_stretched());
  EXPECT_EQ(wide->shape(), kImage);
  EXPECT_FALSE(gate.stretched({2, 24, 1, 1}));
  EXPECT_FALSE(gate.stretched({12, 1, 1}));
  EXPECT_EQ(gate.stretched({3, 2, 12, 1, 1})->shape(), (Shape{3, 2, 12, 1, 1}));
}

TEST(View, RefinesTwoAxesToTheSameParts) {
  ViewDigits a{{2, 1, 4}, {3, 1, 6}}, b{{1, 6, 4}, {1, 1, 6}};
  const ViewDigits whole{{1, 1, 24}};
  ViewDigits c = whole;
  ASSERT_TRUE(refine_together(a, c));
  EXPECT_EQ(c, (ViewDigits{{1, 6, 4}, {1, 1, 6}}));
  ASSERT_TRUE(refine_together(a, b));
  ViewDigits d{{1, 4, 6}, {1, 1, 4}};
  EXPECT_FALSE(refine_together(a, d));
}

/// A view read as a tensor: the elements of the value, in the code's order.
at::Tensor seen(const CodeView& view, const at::Tensor& value) {
  std::vector<int64_t> sizes, strides;
  for (const ViewDigit& digit : view.digits()) {
    sizes.push_back(digit.size);
    strides.push_back(digit.axis < 0 ? 0 : digit.weight * value.stride(digit.axis));
  }
  return value.as_strided(sizes, strides).reshape(view.shape());
}

/// Random views, permutations and expansions, against PyTorch's own.
TEST(View, SeesWhatPyTorchSees) {
  std::mt19937_64 engine(11);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(engine() % limit); };
  int reshaped = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Shape shape;
    for (int64_t axes = 2 + below(3); axes > 0; --axes)
      shape.push_back(std::vector<int64_t>{1, 2, 3, 4, 6, 12}[below(6)]);
    const at::Tensor value = at::arange(Box::whole(shape).volume(), at::kDouble).reshape(shape);
    at::Tensor expected = value;
    CodeView view = CodeView::plain(shape);
    for (int step = 0; step < 4; ++step) {
      if (below(2) == 0) {
        std::vector<int> order(view.num_axes());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), engine);
        view = view.permuted(order);
        expected = expected.permute(std::vector<int64_t>(order.begin(), order.end()));
      } else {
        // Factors of the volume, in random axes.
        Shape wanted(1 + below(5), 1);
        for (int64_t size : view.shape())
          for (int64_t prime : {2, 3})
            for (; size % prime == 0; size /= prime) wanted[below(std::ssize(wanted))] *= prime;
        const std::optional<CodeView> other = view.reshaped(wanted);
        if (!other) continue;
        ++reshaped;
        view = *other;
        expected = expected.reshape(wanted);
      }
      ASSERT_EQ(view.shape(), expected.sizes().vec());
      ASSERT_TRUE(at::equal(seen(view, value), expected));
    }
  }
  EXPECT_GT(reshaped, 100);
}

/// What a weight is to a permuted tensor, it is to the value in its own form.
TEST(ViewDigits, AreSortedByAxisAndTakenAway) {
  const CodeView view = CodeView::plain({2, 6, 4}).reshaped({2, 2, 3, 4})->permuted({0, 3, 2, 1});
  const ViewDigits all = view.digits();
  const std::vector<ViewDigits> axes = digits_by_axis(all, 3);
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[1], (ViewDigits{{1, 3, 2}, {1, 1, 3}}));
  EXPECT_EQ(axes[2], (ViewDigits{{2, 1, 4}}));
  EXPECT_EQ(digits_without(all, axes[1]), (ViewDigits{{0, 1, 2}, {2, 1, 4}}));
  EXPECT_EQ(digits_without(all, {}), all);
}

TEST(WeightForm, IsWhatBroadcastingSees) {
  const Shape shape{2, 6, 3, 4};
  const at::Tensor value = at::rand(shape, at::kDouble);
  const CodeView plain = CodeView::plain(shape);
  const std::vector<CodeView> views{plain,
                                    plain.permuted({0, 2, 3, 1}),
                                    plain.reshaped({2, 6, 12})->permuted({0, 2, 1}),
                                    *plain.reshaped({2, 2, 3, 3, 4}),
                                    plain.reshaped({2, 2, 3, 3, 4})->permuted({0, 3, 2, 4, 1}),
                                    *plain.reshaped({2, 72})};
  int moved = 0;
  for (const CodeView& view : views)
    for (int stretched = 0; stretched < 1 << view.num_axes(); ++stretched) {
      Shape weight_shape = view.shape();
      for (int axis = 0; axis < view.num_axes(); ++axis)
        if (axis == 0 || stretched >> axis & 1) weight_shape[axis] = 1;
      const at::Tensor weight = at::rand(weight_shape, at::kDouble);
      const std::optional<WeightForm> form = form_of_weight(weight_shape, view, shape);
      ASSERT_TRUE(form);
      moved += form->moves;
      const at::Tensor fitted = form->moves ? form->moved(weight) : weight.reshape(form->shape);
      EXPECT_TRUE(at::equal(seen(view, (value * fitted).contiguous()), seen(view, value) * weight));
    }
  EXPECT_GT(moved, 10);
  EXPECT_FALSE(form_of_weight({2, 6, 1, 1}, plain, shape));  // one for each sample
  EXPECT_FALSE(form_of_weight({5, 1, 1}, plain, shape));
}

using F = WeightFunction;

ExpressionPointer numbers(at::IntArrayRef shape, double first) {
  WeightSymbol weight;
  weight.name = "w" + std::to_string(first);
  weight.tensor = (at::arange(24, at::kDouble) + first).narrow(0, 0, c10::multiply_integers(shape));
  weight.tensor = weight.tensor.reshape(shape);
  weight.view = shape.vec();
  return expression_of(weight);
}

TEST(WeightMemory, WhatIsWrittenIntoOneIsSeenInAll) {
  const ComputedPointer whole = computed_weight(numbers({4, 6}, 0));
  const ComputedPointer rows = weight_view(whole, {{F::kSlice, {}, {0, 1, 4, 2}}});
  const ComputedPointer turned = weight_view(rows, {{F::kPermute, {}, {1, 0}}});
  const ComputedPointer flat = weight_view(whole, {{F::kReshape, {}, {24}}});
  write_weight(turned, numbers({6, 2}, 100));
  at::Tensor expected = at::arange(24, at::kDouble).reshape({4, 6}).clone();
  expected.slice(0, 1, 4, 2).t().copy_((at::arange(12, at::kDouble) + 100).reshape({6, 2}));
  EXPECT_TRUE(at::equal(whole->expression->value, expected));
  EXPECT_TRUE(at::equal(rows->expression->value, expected.slice(0, 1, 4, 2)));
  EXPECT_TRUE(at::equal(flat->expression->value, expected.reshape({24})));
  write_weight(whole, numbers({6}, 7));  // broadcast
  EXPECT_TRUE(at::equal(turned->expression->value,
                        (at::arange(6, at::kDouble) + 7).unsqueeze(1).expand({6, 2})));
}

TEST(WeightMemory, WeightsOfTheModuleAndPossibleCopiesAreNotWritten) {
  const ComputedPointer whole = computed_weight(numbers({4, 6}, 0));
  EXPECT_EQ(why_not_writable(*whole), "");
  const ComputedPointer view = weight_view(whole, {{F::kReshape, {}, {24}}});
  EXPECT_EQ(why_not_writable(*view), "");
  view->may_be_copy = true;
  EXPECT_NE(why_not_writable(*whole), "") << "whether the view sees it is not known";
  const ComputedPointer own = computed_weight(numbers({2}, 0));
  own->of_module = true;
  EXPECT_NE(why_not_writable(*weight_view(own, {})), "");
}

}  // namespace
}  // namespace tessera::view_test
