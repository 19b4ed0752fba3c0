// Pointwise functions and PReLU: against autograd on random numbers and at their kinks, and the
// promise that an element's result does not depend on where it lies.

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <set>

#include "tessera/base/error.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/prelu.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::activation_test {
namespace {

using F = PointwiseFunction;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The type of an image, or of batch x channels.
ValueType type_of(const Shape& shape) {
  ValueType type = ValueType::image(shape.size() > 2 ? shape : Shape{shape[0], shape[1], 1});
  type.axes.resize(shape.size());
  return type;
}

/// Batch, channels and none to three spatial axes.
Shape draw_shape(Draw& draw) {
  Shape shape{draw.between(1, 3), draw.between(1, 4)};
  for (int64_t axis = draw.between(0, 3); axis > 0; --axis) shape.push_back(draw.between(1, 9));
  return shape;
}

PointwiseOptions draw_options(Draw& draw, F function) {
  const double u = static_cast<double>(draw.between(1, 99)) / 50;
  switch (function) {
    case F::kLeakyRelu:
      return {function, u - 0.5};
    case F::kElu:
    case F::kCelu:
      return {function, u};
    case F::kHardtanh:
    case F::kClamp:
      return {function, draw.between(0, 3) ? -u : -kInfinity, draw.between(0, 3) ? u : kInfinity};
    case F::kSoftplus:
      return {function, u, static_cast<double>(draw.between(1, 20))};
    case F::kPower:
      return {function, draw.between(0, 1) ? u : static_cast<double>(draw.between(-3, 3))};
    case F::kAffine:
      return {function, u - 1, 1 - 2 * u};
    default:
      return {function};
  }
}

bool needs_positive(F function) {
  return function == F::kLog || function == F::kLog1p || function == F::kSqrt ||
         function == F::kNormRoot || function == F::kRsqrt || function == F::kReciprocal ||
         function == F::kPower;
}

std::shared_ptr<const Op> make_op(const PointwiseOptions& options) {
  Graph graph;
  pointwise(graph, graph.add_input("x", ValueType::image({1, 1, 1})), "f", options);
  return graph.node(0).op;
}

struct Results {
  at::Tensor output;
  at::Tensor gradient;
};

/// The kernels on a whole tensor, with an output gradient of ones; `into` is what they write to.
Results run_kernels(const Op& op, const at::Tensor& x, const Results& into) {
  const Box box = Box::whole(x.sizes().vec());
  const NodeTypes types{{type_of(x.sizes().vec())}, type_of(x.sizes().vec())};
  KernelArgs args;
  args.types = &types;
  args.out_box = box;
  args.inputs = {{x, box}};
  args.output = {into.output, box};
  op.forward(args);
  if (!op.keeps_input(0)) args.inputs = {{}};
  if (!op.keeps_output()) args.output = {};
  args.grad_output = {at::ones_like(x), box};
  args.grad_inputs = {{into.gradient, box}};
  op.input_gradient(args);
  return into;
}

Results run_kernels(const Op& op, const at::Tensor& x) {
  return run_kernels(op, x, {at::empty_like(x), at::empty_like(x)});
}

Results run_autograd(const Op& op, const at::Tensor& x) {
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  const at::Tensor y = op.reference({.inputs = {leaf}, .parameters = {}, .buffers = {}});
  return {y.detach(), torch::autograd::grad({y.sum()}, {leaf})[0]};
}

void expect_same(const Results& ours, const Results& theirs) {
  const double tolerance = ours.output.scalar_type() == at::kDouble ? 1e-12 : 1e-5;
  const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
    return at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true);
  };
  EXPECT_TRUE(same(ours.output, theirs.output)) << ours.output << "\n" << theirs.output;
  EXPECT_TRUE(same(ours.gradient, theirs.gradient)) << ours.gradient << "\n" << theirs.gradient;
}

class Activation : public testing::TestWithParam<uint64_t> {
 protected:
  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Activation, testing::Range<uint64_t>(1, 13));

TEST_P(Activation, AllFunctions) {
  for (const PointwiseDescription& description : pointwise_functions()) {
    const auto op = make_op(draw_options(draw, description.function));
    SCOPED_TRACE(op->kind() + " " + op->settings());
    const Shape shape = draw_shape(draw);
    const at::Tensor x = needs_positive(description.function) ? draw.uniform(shape, 0.1, 3)
                                                              : draw.uniform(shape, -5, 5);
    check_op(*op, {type_of(shape)}, {x}, {}, {}, GetParam());
  }
}

TEST_P(Activation, Prelu) {
  const Shape shape = draw_shape(draw);
  Graph graph;
  prelu(graph, graph.add_input("x", type_of(shape)), "act",
        {.num_parameters = draw.between(0, 1) ? shape[1] : 1});
  check_graph_node(graph, GetParam());
}

TEST(ActivationKinks, GradientsAreThoseOfAutograd) {
  const at::Tensor x = at::tensor({-6., -3., -2., -1., -0.5, -0., 0., 0.5, 1., 2., 3., 6., 30.,
                                   kInfinity, -kInfinity, kNan},
                                  at::kDouble)
                           .repeat({4})
                           .view({1, 2, 32});  // whole vectors: autograd takes ATen's vector code
  std::vector<PointwiseOptions> cases{
      {F::kHardtanh, 0, 6},  {F::kHardtanh, -1, 1},  {F::kHardtanh, -kInfinity, 2},
      {F::kClamp, 0, 6},     {F::kClamp, -1, 1},     {F::kClamp, -1, kInfinity},
      {F::kClamp, 0, 0},     {F::kLeakyRelu, 0.1},   {F::kLeakyRelu, 0},
      {F::kLeakyRelu, -0.5}, {F::kElu, 0.7},         {F::kCelu, 0.7},
      {F::kSoftplus, 2, 6},  {F::kSoftplus, 1, 0.5}, {F::kPower, 0},
      {F::kPower, 1},        {F::kPower, 2},         {F::kPower, 3},
      {F::kPower, -1},       {F::kPower, 0.5},       {F::kAffine, 2, -1}};
  for (const PointwiseDescription& description : pointwise_functions())
    if (description.a.empty()) cases.push_back({description.function});
  for (const PointwiseOptions& options : cases) {
    const auto op = make_op(options);
    SCOPED_TRACE(op->kind() + " " + op->settings());
    // The quotient of two infinities is NaN; the derivative there is 0.
    const at::Tensor values = options.function == F::kSoftsign ? x.clamp(-100, 100) : x;
    for (at::ScalarType real : {at::kDouble, at::kFloat})
      expect_same(run_kernels(*op, values.to(real)), run_autograd(*op, values.to(real)));
  }
}

TEST(ActivationKinks, PreluAtZero) {
  Graph graph;
  prelu(graph, graph.add_input("x", ValueType::image({1, 2, 3})), "act", {.num_parameters = 2});
  const at::Tensor x = at::tensor({0., -0., 1., -1., 0., kInfinity}, at::kDouble).view({1, 2, 3});
  check_op(*graph.node(0).op, {ValueType::image({1, 2, 3})}, {x},
           {at::tensor({0.25, -0.5}, at::kDouble)}, {}, 1);
}

/// ATen's own kernels fail this: their scalar and vector codes differ in the last bit.
TEST(ActivationTiles, EqualElementsGiveEqualBits) {
  Draw draw(7);
  for (const PointwiseDescription& description : pointwise_functions()) {
    SCOPED_TRACE(description.kind);
    const auto op = make_op(draw_options(draw, description.function));
    for (at::ScalarType real : {at::kDouble, at::kFloat})
      for (int64_t value = 1; value < 20; ++value) {
        const at::Tensor dense = at::full({3, 37}, 0.13 * static_cast<double>(value), real);
        const at::Tensor y = run_kernels(*op, dense).output;
        EXPECT_TRUE(at::equal(y, y[0][0].expand_as(y))) << value;
        EXPECT_TRUE(at::equal(y, run_kernels(*op, strided_copy(draw, dense)).output)) << value;
      }
  }
}

TEST(ActivationTiles, ManyTilesWithRowsAcrossTheirEdges) {
  const Shape shape{2, 3, 131, 67};  // more than three tiles
  Draw draw(11);
  for (F function : {F::kGelu, F::kSilu, F::kExp, F::kAffine}) {
    const auto op = make_op({function, 1.5, -0.5});
    SCOPED_TRACE(op->kind());
    const at::Tensor x = draw.uniform(shape, -3, 3);
    check_op(*op, {type_of(shape)}, {x}, {}, {}, 1, {.max_parts_per_axis = 1});
    for (at::ScalarType real : {at::kDouble, at::kFloat}) {
      const at::Tensor dense = x.to(real), strided = strided_copy(draw, dense);
      const Results ours = run_kernels(*op, dense);
      expect_same(ours, run_autograd(*op, dense));
      EXPECT_TRUE(at::equal(ours.output, run_kernels(*op, strided).output));
      // From dense to strided: where GELU in float32 overlooks the strides of its result.
      const Results views{strided_copy(draw, dense), strided_copy(draw, dense)};
      expect_same(run_kernels(*op, dense, views), ours);
    }
  }
}

/// Celu's gradient in PyTorch rounds alpha to float32, which is why it is not the oracle.
TEST(ActivationRules, CeluIsThatOfPyTorch) {
  const auto op = make_op({F::kCelu, 1.3});
  const at::Tensor x = at::linspace(-3, 3, 101, at::kDouble).view({1, 1, 101}).requires_grad_();
  const at::Tensor theirs = at::celu(x, 1.3),
                   ours = op->reference({.inputs = {x}, .parameters = {}, .buffers = {}});
  EXPECT_TRUE(at::equal(theirs, ours));
  const at::Tensor their_gradient = torch::autograd::grad({theirs.sum()}, {x})[0];
  const at::Tensor our_gradient = torch::autograd::grad({ours.sum()}, {x})[0];
  EXPECT_LT((their_gradient - our_gradient).abs().max().item<double>(), 1e-6);
}

TEST(ActivationRules, FunctionsAreFoundByKind) {
  std::set<std::string> kinds;
  for (const PointwiseDescription& description : pointwise_functions()) {
    EXPECT_EQ(static_cast<size_t>(description.function), kinds.size()) << description.kind;
    kinds.insert(description.kind);
    EXPECT_EQ(pointwise_function_called(description.kind), description.function);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kLastPointwiseFunction) + 1);
  EXPECT_EQ(pointwise_function_called("relu"), std::nullopt);
  EXPECT_EQ(make_op({F::kNegate})->kind(), "neg");
  EXPECT_EQ(make_op({F::kHardtanh, 0, 6})->settings(), "low 0, high 6");
  EXPECT_EQ(make_op({F::kLeakyRelu, 0.1})->settings(), "slope 0.1");
  EXPECT_EQ(make_op({F::kSilu})->settings(), "");
}

TEST(ActivationRules, NoMoreIsKeptThanBackwardNeeds) {
  EXPECT_TRUE(make_op({F::kSigmoid})->keeps_output());
  EXPECT_FALSE(make_op({F::kSigmoid})->keeps_input(0));
  EXPECT_TRUE(make_op({F::kSilu})->keeps_input(0));
  EXPECT_FALSE(make_op({F::kSilu})->keeps_output());
  EXPECT_FALSE(make_op({F::kAffine, 2, 1})->keeps_input(0));
  EXPECT_FALSE(make_op({F::kAffine, 2, 1})->keeps_output());
}

TEST(ActivationRules, WhatIsRefused) {
  const std::vector<PointwiseOptions> wrong{
      {F::kCelu, 0},         {F::kSoftplus, 0, 20}, {F::kSoftplus, 1, kNan},
      {F::kHardtanh, 1, -1}, {F::kClamp, 1, kNan},  {F::kLeakyRelu, kNan},
      {F::kElu, kInfinity},  {F::kPower, kNan},     {F::kAffine, 1, kInfinity}};
  for (const PointwiseOptions& options : wrong)
    EXPECT_THROW(make_op(options), InvalidInput) << static_cast<int>(options.function);
  Graph graph;
  ValueType labels = ValueType::image({1, 2, 6});
  labels.element = Element::kIndex;
  const ValueId t = graph.add_input("labels", labels);
  EXPECT_THROW(pointwise(graph, t, "f", {F::kSilu}), InvalidInput);
  EXPECT_THROW(prelu(graph, t, "p"), InvalidInput);
}

TEST(PreluRules, ParameterAndRefusals) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 3, 4, 4}));
  prelu(graph, x, "act", {.num_parameters = 3, .initial = 0.1});
  ASSERT_EQ(graph.parameters().size(), 1u);
  EXPECT_EQ(graph.parameters()[0].name, "act.weight");
  EXPECT_EQ(graph.parameters()[0].shape, Shape{3});
  EXPECT_EQ(initial_value(graph.parameters()[0], 1)[2].item<double>(), 0.1);
  EXPECT_THROW(prelu(graph, x, "two", {.num_parameters = 2}), InvalidInput);
  EXPECT_THROW(prelu(graph, x, "none", {.num_parameters = 0}), InvalidInput);
  EXPECT_THROW(prelu(graph, x, "nan", {.initial = kNan}), InvalidInput);
}

/// What the executor sets for its thread, the threads of a kernel have to set for themselves.
TEST(Pointwise, ThreadsTakeOverTheInferenceModeOfTheirCaller) {
  const c10::InferenceMode mode;
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const at::Tensor x = at::randn({1, 1, 300, 301}, at::kDouble);
  const Results into{at::empty_like(x), at::empty_like(x)};
  const Results results = run_kernels(*make_op({F::kSigmoid}), x, into);
  at::set_num_threads(before);
  EXPECT_TRUE(results.output.allclose(at::sigmoid(x), 1e-14, 1e-14));
}

TEST(NormRoot, HasNoGradientAtZero) {
  const at::Tensor x = at::tensor({0.0, 4.0, 0.0, 9.0}, at::kDouble).view({1, 1, 4});
  const auto op = make_op({F::kNormRoot});
  const Results ours = run_kernels(*op, x);
  expect_same(ours, run_autograd(*op, x));
  const at::Tensor expected = at::tensor({0.0, 0.25, 0.0, 1 / 6.0}, at::kDouble).view({1, 1, 4});
  EXPECT_TRUE(at::allclose(ours.gradient, expected));
}

}  // namespace
}  // namespace tessera::activation_test
