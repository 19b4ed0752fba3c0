// Arithmetic with broadcasting, of two values and of a value and a parameter.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/kernels/arithmetic.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::arithmetic_test {
namespace {

constexpr Arithmetic kAll[] = {
    Arithmetic::kAdd,     Arithmetic::kSubtract, Arithmetic::kMultiply,    Arithmetic::kDivide,
    Arithmetic::kMaximum, Arithmetic::kMinimum,  Arithmetic::kFirstMaximum};

Shape random_shape(Draw& draw) {
  Shape shape{draw.between(1, 3), draw.between(1, 4)};
  for (int64_t axis = draw.between(1, 3); axis > 0; --axis) shape.push_back(draw.between(1, 7));
  return shape;
}

/// `shape` with some axes of size 1, and at times without its first axes.
Shape stretchable(Draw& draw, Shape shape, size_t least_axes) {
  for (int64_t& size : shape)
    if (draw.between(0, 2) == 0) size = 1;
  while (shape.size() > least_axes && draw.between(0, 3) == 0) shape.erase(shape.begin());
  return shape;
}

/// An image, or batch x channels.
ValueType type_of(const Shape& shape) {
  if (shape.size() > 2) return ValueType::image(shape);
  ValueType type = ValueType::image({shape[0], shape[1], 1});
  type.axes.resize(2);
  return type;
}

/// In [0.5, 1.5) and of either sign: to be divided by.
at::Tensor away_from_zero(Draw& draw, const Shape& shape) {
  const at::Tensor sign = draw.uniform(shape, -1, 1).sign();
  return draw.uniform(shape, 0.5, 1.5) * sign;
}

class ArithmeticOps : public testing::TestWithParam<uint64_t> {
 protected:
  ValueId value(const Shape& shape) { return graph.add_input("x", type_of(shape)); }

  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, ArithmeticOps, testing::Range<uint64_t>(1, 31));

TEST_P(ArithmeticOps, OfTwoValues) {
  for (Arithmetic how : kAll) {
    const Shape shape = random_shape(draw);
    const ValueId a = value(stretchable(draw, shape, 2)), b = value(stretchable(draw, shape, 2));
    arithmetic(graph, a, b, "op", how);
    const Node& node = graph.nodes().back();
    check_op(
        *node.op, node.types.inputs,
        {draw.uniform(graph.type(a).shape(), -1, 1), away_from_zero(draw, graph.type(b).shape())},
        {}, {}, GetParam());
  }
}

TEST_P(ArithmeticOps, OfFeatures) {
  const Shape shape{draw.between(1, 5), draw.between(1, 5)};
  for (Arithmetic how : kAll) arithmetic(graph, value(shape), value({shape[0], 1}), "op", how);
  check_graph_node(graph, GetParam());
}

TEST_P(ArithmeticOps, OfAValueAndItself) {
  const ValueId x = value(random_shape(draw));
  arithmetic(graph, x, x, "square", Arithmetic::kMultiply);
  check_graph_node(graph, GetParam());
}

// Integers, so that many elements are equal.
TEST_P(ArithmeticOps, TiesShareTheGradientOrTheFirstHasIt) {
  const Shape shape = random_shape(draw);
  for (Arithmetic how : {Arithmetic::kMaximum, Arithmetic::kMinimum, Arithmetic::kFirstMaximum}) {
    arithmetic(graph, value(shape), value(stretchable(draw, shape, 2)), "op", how);
    const Node& node = graph.nodes().back();
    const at::Tensor a = draw.uniform(shape, -1.5, 1.5).round();
    const at::Tensor b = draw.uniform(node.types.inputs[1].shape(), -1.5, 1.5).round();
    check_op(*node.op, node.types.inputs, {a, b}, {}, {}, GetParam());
  }
}

TEST_P(ArithmeticOps, WithAParameter) {
  constexpr ParameterRole kRoles[] = {ParameterRole::kTrainable, ParameterRole::kFrozen,
                                      ParameterRole::kBuffer};
  for (Arithmetic how : kAll) {
    const Shape shape = random_shape(draw);
    const Shape weight = stretchable(draw, shape, 0);
    const ParameterOperand operand{
        .shape = weight,
        .side = draw.between(0, 1) ? ParameterOperand::Side::kLeft : ParameterOperand::Side::kRight,
        .role = kRoles[draw.between(0, 2)]};
    const std::string name = "op" + std::to_string(graph.nodes().size());
    arithmetic_with_parameter(graph, value(shape), name, how, operand);
    const Node& node = graph.nodes().back();
    const std::vector<at::Tensor> weights{away_from_zero(draw, weight)};
    const bool trained = operand.role == ParameterRole::kTrainable;
    check_op(*node.op, node.types.inputs, {away_from_zero(draw, shape)},
             trained ? weights : std::vector<at::Tensor>{},
             trained ? std::vector<at::Tensor>{} : weights, GetParam());
  }
}

// A model's [C] that its code reshapes to [C, 1, 1] keeps its shape in the weights file.
TEST_P(ArithmeticOps, WithAParameterOfAnotherShape) {
  const Shape shape = random_shape(draw);
  Shape seen(shape.size() - 1, 1);
  seen[0] = shape[1];
  arithmetic_with_parameter(graph, value(shape), "gamma", Arithmetic::kMultiply,
                            {.shape = seen, .stored = {shape[1]}});
  EXPECT_EQ(graph.parameters()[0].shape, Shape{shape[1]});
  check_graph_node(graph, GetParam());
}

class ArithmeticRules : public testing::Test {
 protected:
  ValueId value(const Shape& shape) { return graph.add_input("x", type_of(shape)); }
  Graph graph;
};

TEST_F(ArithmeticRules, AddOfOneShapeIsTheResidualAdd) {
  const ValueId x = value({2, 3, 4, 5});
  arithmetic(graph, x, value({2, 3, 4, 5}), "sum", Arithmetic::kAdd);
  arithmetic(graph, x, value({1, 3, 1, 1}), "bias", Arithmetic::kAdd);
  EXPECT_EQ(graph.node(0).op->kind(), "add");
  EXPECT_EQ(graph.node(1).op->kind(), "broadcast_add");
}

TEST_F(ArithmeticRules, AxesComeFromTheLargerOperand) {
  ValueType image = ValueType::image({2, 3, 8, 6}), pooled = ValueType::image({1, 3, 1, 6});
  image.axes[2].stride = Ratio::of(2, 1);
  pooled.axes[2].stride = Ratio::of(16, 1);
  const ValueId x = graph.add_input("x", image), y = graph.add_input("y", pooled);
  EXPECT_EQ(graph.type(arithmetic(graph, y, x, "op", Arithmetic::kMultiply)), image);
  // Batch x channels beside an image: by position, as in PyTorch. Its axes give sizes only.
  const ValueType type =
      graph.type(arithmetic(graph, value({5, 6}), value({2, 3, 1, 6}), "op", Arithmetic::kMaximum));
  EXPECT_EQ(type.shape(), (Shape{2, 3, 5, 6}));
  EXPECT_EQ(type.axes[2].kind, AxisKind::kSpatial);
  EXPECT_EQ(type.axes[2].spatial_index, 0);
}

TEST_F(ArithmeticRules, NeededBoxes) {
  arithmetic(graph, value({2, 3, 8, 1}), value({1, 8, 6}), "op", Arithmetic::kMultiply);
  const Node& node = graph.node(0);
  const Box out{{1, 2}, {0, 3}, {2, 4}, {5, 6}};
  EXPECT_EQ(node.op->needed(0, out, node.types), (Box{{1, 2}, {0, 3}, {2, 4}, {0, 1}}));
  EXPECT_EQ(node.op->needed(1, out, node.types), (Box{{0, 1}, {2, 4}, {5, 6}}));
  for (int input : {0, 1})
    EXPECT_TRUE(node.op->needed(input, {{1, 1}, {0, 3}, {2, 4}, {5, 6}}, node.types).empty());
}

TEST_F(ArithmeticRules, KeepsOnlyWhatBackwardReads) {
  const ValueId x = value({2, 3, 4}), y = value({2, 1, 4});
  const auto keeps = [&](Arithmetic how) {
    arithmetic(graph, x, y, "op", how);
    return graph.nodes().back().op->keeps_input(1);
  };
  EXPECT_FALSE(keeps(Arithmetic::kSubtract));
  EXPECT_TRUE(keeps(Arithmetic::kDivide));
  const auto keeps_with = [&](Arithmetic how, ParameterRole role, ParameterOperand::Side side) {
    const std::string name = "op" + std::to_string(graph.nodes().size());
    arithmetic_with_parameter(graph, x, name, how, {.shape = {4}, .side = side, .role = role});
    return graph.nodes().back().op->keeps_input(0);
  };
  using Side = ParameterOperand::Side;
  EXPECT_TRUE(keeps_with(Arithmetic::kMultiply, ParameterRole::kTrainable, Side::kRight));
  EXPECT_FALSE(keeps_with(Arithmetic::kMultiply, ParameterRole::kFrozen, Side::kLeft));
  EXPECT_FALSE(keeps_with(Arithmetic::kDivide, ParameterRole::kBuffer, Side::kRight));
  EXPECT_TRUE(keeps_with(Arithmetic::kDivide, ParameterRole::kBuffer, Side::kLeft));
  EXPECT_FALSE(keeps_with(Arithmetic::kAdd, ParameterRole::kTrainable, Side::kRight));
}

// As in PyTorch: neither operand is the smaller one.
TEST_F(ArithmeticRules, BesideNanBothGetTheGradient) {
  const at::Tensor number = at::ones({1}, at::kDouble), nan = number * std::nan("");
  for (Arithmetic how : {Arithmetic::kMaximum, Arithmetic::kMinimum})
    for (int operand : {0, 1}) {
      const at::Tensor gradient = at::zeros_like(number);
      const at::Tensor bytes =
          at::empty({gradient_scratch_bytes(how, 1, /*stretched=*/false, at::kDouble)}, at::kByte);
      store_gradient(how, operand, number * 3, number, nan, gradient, Scratch(bytes));
      EXPECT_EQ(gradient.item<double>(), 3);
    }
}

TEST_F(ArithmeticRules, ParametersHaveNameRoleAndStart) {
  const ValueId x = value({2, 3, 4, 4});
  arithmetic_with_parameter(graph, x, "gamma", Arithmetic::kMultiply,
                            {.shape = {3, 1, 1}, .initial = {Initial::Kind::kConstant, 1e-6}});
  const Parameter& gamma = graph.parameters()[0];
  EXPECT_EQ(gamma.name, "gamma.weight");
  EXPECT_EQ(gamma.shape, (Shape{3, 1, 1}));
  EXPECT_EQ(gamma.role, ParameterRole::kTrainable);
  EXPECT_EQ(gamma.initial.value, 1e-6);
  EXPECT_EQ(graph.node(0).op->settings(), "weight 3x1x1");
  EXPECT_EQ(graph.node(0).parameters, std::vector<ParameterId>{0});
}

// An imported weight may be frozen before the builder asks for it.
TEST_F(ArithmeticRules, AFrozenWeightOfThatNameIsTaken) {
  graph.add_parameter({"gate.weight", {1}, ParameterRole::kFrozen, {}});
  arithmetic_with_parameter(graph, value({2, 3, 4}), "gate", Arithmetic::kMultiply, {.shape = {1}});
  EXPECT_FALSE(graph.node(0).op->keeps_input(0));
  EXPECT_FALSE(graph.has_trainable(graph.node(0)));
}

TEST_F(ArithmeticRules, Refusals) {
  const ValueId x = value({2, 3, 4, 5});
  EXPECT_THROW(arithmetic(graph, x, value({2, 3, 4, 4}), "op", Arithmetic::kMultiply),
               InvalidInput);
  EXPECT_THROW(arithmetic(graph, x, value({3, 1}), "op", Arithmetic::kAdd), InvalidInput);
  ValueType labels = ValueType::image({2, 3, 4, 5});
  labels.element = Element::kIndex;
  const ValueId t = graph.add_input("labels", labels);
  EXPECT_THROW(arithmetic(graph, x, t, "op", Arithmetic::kAdd), InvalidInput);
  int number = 0;
  for (const Shape& shape : std::vector<Shape>{{3}, {3, 4, 4}, {2, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}) {
    const std::string name = "op" + std::to_string(number++);
    EXPECT_THROW(arithmetic_with_parameter(graph, x, name, Arithmetic::kMultiply, {.shape = shape}),
                 InvalidInput)
        << to_string(shape);
  }
  EXPECT_THROW(arithmetic_with_parameter(graph, x, "other_size", Arithmetic::kMultiply,
                                         {.shape = {3, 1, 1}, .stored = {4}}),
               InvalidInput);
  const ValueId narrow = value({2, 1, 4, 5});  // the parameter may not make it larger
  EXPECT_THROW(
      arithmetic_with_parameter(graph, narrow, "wide", Arithmetic::kMultiply, {.shape = {3, 1, 1}}),
      InvalidInput);
}

}  // namespace
}  // namespace tessera::arithmetic_test
