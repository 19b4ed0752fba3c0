// ReLU, add, concat, pad and dropout on random shapes with one to three spatial axes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/pad.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::pointwise_test {
namespace {

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

/// Batch, channels and one to three spatial axes.
Shape random_shape(std::mt19937_64& engine) {
  Shape shape{between(engine, 1, 3), between(engine, 1, 4)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 1, 9));
  return shape;
}

template <class Run>
void expect_invalid(const std::vector<std::string>& parts, Run&& run) {
  try {
    run();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << '"' << part << "\" is missing in: " << error.what();
  }
}

template <class Base>
class WithGraph : public Base {
 protected:
  ValueId image(const Shape& shape) { return graph.add_input("x", ValueType::image(shape)); }

  Graph graph;
};

class Pointwise : public WithGraph<testing::TestWithParam<uint64_t>> {
 protected:
  void check() {
    SCOPED_TRACE("seed " + std::to_string(GetParam()));
    check_graph_node(graph, GetParam());
  }

  std::mt19937_64 engine{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Pointwise, testing::Range<uint64_t>(1, 26));

using PointwiseRules = WithGraph<testing::Test>;

TEST_P(Pointwise, Relu) {
  relu(graph, image(random_shape(engine)), "relu");
  check();
}

TEST_P(Pointwise, Add) {
  const Shape shape = random_shape(engine);
  add(graph, image(shape), image(shape), "add");
  check();
}

TEST_P(Pointwise, AddOfAValueToItself) {
  const ValueId x = image(random_shape(engine));
  add(graph, x, x, "double");
  check();
}

TEST_P(Pointwise, Concat) {
  Shape shape = random_shape(engine);
  std::vector<ValueId> values;
  for (int64_t i = between(engine, 1, 4); i > 0; --i) {
    shape[1] = between(engine, 1, 4);
    values.push_back(image(shape));
  }
  concat(graph, values, "skip");
  check();
}

TEST_P(Pointwise, PadAndCrop) {
  const Shape shape = random_shape(engine);
  PadOptions options;
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    const int64_t low = between(engine, -shape[axis] + 1, 12);  // wide: some pieces need nothing
    options.low.push_back(low);
    options.high.push_back(between(engine, -shape[axis] + 1 - std::min<int64_t>(low, 0), 12));
  }
  pad(graph, image(shape), "pad", options);
  check();
}

TEST_P(Pointwise, Dropout) {
  const double probabilities[] = {0, 0.1, 0.5, 0.9, 1};
  dropout(graph, image(random_shape(engine)), "dropout",
          {.probability = probabilities[GetParam() % 5]});
  check();
}

TEST_P(Pointwise, DropoutOfChannelsSamplesAndBatches) {
  using Unit = DropoutOptions::Unit;
  const double probabilities[] = {0, 0.3, 0.7, 1};
  const Unit units[] = {Unit::kChannel, Unit::kSample, Unit::kBatch};
  dropout(graph, image(random_shape(engine)), "dropout",
          {.probability = probabilities[GetParam() % 4],
           .unit = units[GetParam() % 3],
           .scale = GetParam() % 2 == 0 ? 0 : 0.8});
  check();
}

TEST_P(Pointwise, AlphaDropout) {
  const double probabilities[] = {0, 0.3, 0.7, 1};
  dropout(graph, image(random_shape(engine)), "dropout",
          {.probability = probabilities[GetParam() % 4],
           .unit = GetParam() % 2 == 0 ? DropoutOptions::Unit::kElement
                                       : DropoutOptions::Unit::kChannel,
           .form = DropoutOptions::Form::kAlpha});
  check();
}

TEST_F(PointwiseRules, OnlyReluIsRelu) {
  const ValueId x = image({1, 2, 3, 4});
  relu(graph, x, "relu");
  add(graph, x, x, "add");
  EXPECT_TRUE(is_relu(*graph.node(0).op));
  EXPECT_FALSE(is_relu(*graph.node(1).op));
}

TEST_F(PointwiseRules, TypesKeepStrides) {
  ValueType type = ValueType::image({1, 2, 6, 8});
  type.axes[2].stride = Ratio::of(4, 1);
  const ValueId x = graph.add_input("x", type);
  const ValueType joined = graph.type(concat(graph, {x, x}, "concat"));
  EXPECT_EQ(joined.shape(), (Shape{1, 4, 6, 8}));
  const ValueType padded = graph.type(pad(graph, x, "pad", {.low = {1, -2}, .high = {2, 0}}));
  EXPECT_EQ(padded.shape(), (Shape{1, 2, 9, 6}));
  for (const ValueType& result : {joined, padded}) {
    EXPECT_EQ(result.axes[2].stride, Ratio::of(4, 1));
    EXPECT_EQ(result.axes[3].spatial_index, 1);
  }
}

TEST_F(PointwiseRules, WrongShapesNameBoth) {
  const ValueId x = image({1, 2, 6, 8}), y = image({1, 3, 6, 8}), z = image({1, 2, 6, 7});
  expect_invalid({"[add sum]", "1x2x6x8", "1x3x6x8"}, [&] { add(graph, x, y, "sum"); });
  expect_invalid({"[concat skip]", "1x2x6x8", "input 2 is 1x2x6x7"}, [&] {
    concat(graph, {x, y, z}, "skip");
  });
  expect_invalid({"at least 1"}, [&] { concat(graph, {}, "skip"); });
  ValueType labels = ValueType::image({1, 2, 6, 8});
  labels.element = Element::kIndex;
  const ValueId t = graph.add_input("labels", labels);
  expect_invalid({"[relu relu]", "labels"}, [&] { relu(graph, t, "relu"); });
}

TEST_F(PointwiseRules, WrongOptionsNameTheLegalOnes) {
  const ValueId x = image({1, 2, 6, 8});
  expect_invalid({"[pad crop]", "low -4", "high -2", "size is 6", "at least 1"}, [&] {
    pad(graph, x, "crop", {.low = {-4, 0}, .high = {-2, 0}});
  });
  expect_invalid({"low has 1", "1x2x6x8: 2"}, [&] {
    pad(graph, x, "pad", {.low = {1}, .high = {1, 1}});
  });
  for (double probability : {-0.1, 1.1, std::nan("")})
    expect_invalid({"[dropout drop]", "[0, 1]"},
                   [&] { dropout(graph, x, "drop", {.probability = probability}); });
}

TEST_F(PointwiseRules, DropoutMaskIsOfNameStepAndSeed) {
  dropout(graph, image({4, 8, 16, 16}), "drop", {.probability = 0.25});
  const Op& op = *graph.node(0).op;
  const auto run = [&](const std::string& name, uint64_t seed, int64_t step) {
    return op.reference({&name, seed, step, {at::ones({4, 8, 16, 16}, at::kDouble)}, {}, {}});
  };
  const at::Tensor first = run("drop", 1, 0);
  EXPECT_TRUE(at::equal(first, run("drop", 1, 0)));
  EXPECT_FALSE(at::equal(first, run("drop2", 1, 0)));
  EXPECT_FALSE(at::equal(first, run("drop", 2, 0)));
  EXPECT_FALSE(at::equal(first, run("drop", 1, 1)));
  EXPECT_NEAR(first.ne(0).to(at::kDouble).mean().item<double>(), 0.75, 0.02);
  EXPECT_NEAR(first.max().item<double>(), 1 / 0.75, 1e-15);
}

/// The mask has one draw for each unit, and units differ.
// One recording of a step serves all steps: the key comes from memory.
TEST_F(PointwiseRules, DropoutReadsItsKey) {
  dropout(graph, image({2, 3, 5, 7}), "drop", {.probability = 0.5});
  const Node& node = graph.nodes().back();
  const Box whole = Box::whole(node.types.output.shape());
  KernelArgs args;
  args.name = &node.name;
  args.types = &node.types;
  args.seed = 5;
  args.out_box = whole;
  args.inputs = {{at::ones(whole.shape(), at::kDouble), whole}};
  const auto mask = [&] {
    args.output = {at::zeros(whole.shape(), at::kDouble), whole};
    node.op->forward(args);
    return args.output.tensor;
  };
  args.step = 9;
  const at::Tensor of_step_9 = mask();
  args.step = 2;
  EXPECT_FALSE(mask().equal(of_step_9));
  args.key = at::full({}, static_cast<int64_t>(random_key(5, "drop", 9).state()), at::kLong);
  EXPECT_TRUE(mask().equal(of_step_9));
}

TEST_F(PointwiseRules, DropoutDropsWholeUnits) {
  using Unit = DropoutOptions::Unit;
  const auto mask = [&](Unit unit) {
    Graph one;
    const ValueId x = one.add_input("x", ValueType::image({40, 30, 3, 4}));
    dropout(one, x, "drop", {.probability = 0.25, .unit = unit});
    return one.node(0).op->reference(
        {&one.node(0).name, 1, 0, {at::ones({40, 30, 3, 4}, at::kDouble)}, {}, {}});
  };
  const at::Tensor channels = mask(Unit::kChannel), samples = mask(Unit::kSample);
  EXPECT_TRUE(at::equal(channels, channels.narrow(2, 0, 1).narrow(3, 0, 1).expand_as(channels)));
  EXPECT_NEAR(channels.ne(0).to(at::kDouble).mean().item<double>(), 0.75, 0.05);
  EXPECT_TRUE(at::equal(
      samples, samples.narrow(1, 0, 1).narrow(2, 0, 1).narrow(3, 0, 1).expand_as(samples)));
  const double kept = samples.ne(0).to(at::kDouble).mean().item<double>();
  EXPECT_GT(kept, 0.4);
  EXPECT_LT(kept, 0.99);
  const at::Tensor all = mask(Unit::kBatch);
  EXPECT_TRUE(at::equal(all, all.flatten()[0].expand_as(all)));
}

/// Mean 0 and variance 1 stay.
TEST_F(PointwiseRules, AlphaDropoutKeepsMeanAndVariance) {
  dropout(graph, image({4, 8, 64, 64}), "drop",
          {.probability = 0.25, .form = DropoutOptions::Form::kAlpha});
  const std::string name = "drop";
  at::manual_seed(1);
  const at::Tensor y =
      graph.node(0).op->reference({&name, 1, 0, {at::randn({4, 8, 64, 64}, at::kDouble)}, {}, {}});
  EXPECT_NEAR(y.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(y.var().item<double>(), 1, 0.02);
}

}  // namespace
}  // namespace tessera::pointwise_test
