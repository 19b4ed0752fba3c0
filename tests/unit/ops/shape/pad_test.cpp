// Padding of every mode on random shapes with one to three spatial axes, against the pieces' own
// reference and torch's pad().

#include "tessera/ops/shape/pad.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tessera/base/error.h"
#include "tessera/graph/reference.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::pad_test {
namespace {

using Mode = PadOptions::Mode;

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

/// What torch.nn.functional.pad gives for the whole graph.
at::Tensor torch_pad(const at::Tensor& x, const PadOptions& options) {
  std::vector<int64_t> padding;
  for (size_t i = options.low.size(); i-- > 0;)
    padding.insert(padding.end(), {options.low[i], options.high[i]});
  if (options.mode == Mode::kConstant) return at::pad(x, padding, "constant", options.value);
  return at::pad(x, padding,
                 options.mode == Mode::kReflect     ? "reflect"
                 : options.mode == Mode::kReplicate ? "replicate"
                                                    : "circular");
}

void check(const Shape& shape, const PadOptions& options, uint64_t seed) {
  Graph graph;
  const ValueId y = pad(graph, graph.add_input("x", ValueType::image(shape)), "pad", options);
  std::string nodes;
  for (const Node& node : graph.nodes())
    nodes += fmt::format(", {} {}", node.op->kind(), node.op->settings());
  SCOPED_TRACE(fmt::format("seed {}, {}{}", seed, to_string(shape), nodes));
  check_graph_node(graph, seed);
  graph.mark_output(y);
  const at::Tensor x = at::rand(shape, at::kDouble);
  std::vector<at::Tensor> no_parameters;
  const at::Tensor got = run_reference(graph, {x}, no_parameters, 0, 0).outputs[0];
  EXPECT_TRUE(at::equal(got, torch_pad(x, options))) << "the reference differs from pad()";
}

class RandomPad : public testing::TestWithParam<uint64_t> {
 protected:
  RandomPad() {
    for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
      shape.push_back(between(engine, 1, 9));
  }

  /// Padding of up to `most(size)` pixels on each side.
  template <class Most>
  void check_mode(Mode mode, Most&& most) {
    PadOptions options;
    options.mode = mode;
    for (size_t axis = 2; axis < shape.size(); ++axis) {
      options.low.push_back(between(engine, 0, most(shape[axis])));
      options.high.push_back(between(engine, 0, most(shape[axis])));
    }
    check(shape, options, GetParam());
  }

  std::mt19937_64 engine{GetParam()};
  Shape shape{between(engine, 1, 2), between(engine, 1, 3)};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPad, testing::Range<uint64_t>(0, 25));

TEST_P(RandomPad, ConstantAndCrop) {
  PadOptions options;
  options.value = GetParam() % 2 ? 0.7 : 0;
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    const int64_t low = between(engine, -shape[axis] + 1, 12);  // wide: some pieces need nothing
    options.low.push_back(low);
    options.high.push_back(between(engine, -shape[axis] + 1 - std::min<int64_t>(low, 0), 12));
  }
  check(shape, options, GetParam());
}

TEST_P(RandomPad, Reflect) {
  check_mode(Mode::kReflect, [](int64_t size) { return size - 1; });
}

TEST_P(RandomPad, Replicate) {
  check_mode(Mode::kReplicate, [](int64_t) { return 12; });
}

TEST_P(RandomPad, Circular) {
  check_mode(Mode::kCircular, [](int64_t size) { return size; });
}

TEST(Pad, MinusInfinityForMaxima) {
  check({1, 2, 4, 5},
        {.low = {1, 2}, .high = {2, 0}, .value = -std::numeric_limits<double>::infinity()}, 1);
}

/// A row of pieces at the border of a wide image reads a few pixels, never the whole axis.
TEST(Pad, BordersReadNearThem) {
  const auto needed = [](Mode mode, int input, const Range& out) {
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image({1, 1, 100}));
    pad(graph, x, "pad", {.low = {3}, .high = {3}, .mode = mode});
    return graph.node(0).op->needed(input, {{0, 1}, {0, 1}, out}, graph.node(0).types)[2];
  };
  EXPECT_EQ(needed(Mode::kReflect, 0, {0, 2}), (Range{2, 4}));
  EXPECT_EQ(needed(Mode::kReflect, 0, {0, 10}), (Range{0, 7}));
  EXPECT_EQ(needed(Mode::kReflect, 0, {103, 106}), (Range{96, 99}));
  EXPECT_EQ(needed(Mode::kReplicate, 0, {0, 2}), (Range{0, 1}));
  EXPECT_EQ(needed(Mode::kReplicate, 0, {100, 106}), (Range{97, 100}));
  EXPECT_EQ(needed(Mode::kCircular, 0, {0, 10}), (Range{97, 100}));
  EXPECT_EQ(needed(Mode::kCircular, 1, {0, 10}), (Range{0, 7}));
  EXPECT_TRUE(needed(Mode::kCircular, 2, {0, 10}).empty());
  EXPECT_EQ(needed(Mode::kCircular, 2, {100, 106}), (Range{0, 3}));
}

TEST(Pad, CircularIsOneNodePerPaddedAxis) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 4, 5, 6}));
  const ValueId y =
      pad(graph, x, "pad", {.low = {1, 0, 2}, .high = {0, 0, 1}, .mode = Mode::kCircular});
  EXPECT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.value(y).name, "pad");
  EXPECT_EQ(graph.type(y).shape(), (Shape{1, 1, 5, 5, 9}));
  EXPECT_EQ(pad(graph, x, "none", {{0, 0, 0}, {0, 0, 0}, Mode::kCircular}), x);
}

TEST(Pad, RefusesWhatPyTorchRefuses) {
  const auto refuse = [](const PadOptions& options) {
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image({1, 1, 4, 5}));
    EXPECT_THROW(pad(graph, x, "pad", options), InvalidInput);
    EXPECT_TRUE(graph.nodes().empty());
  };
  for (Mode mode : {Mode::kReflect, Mode::kReplicate, Mode::kCircular}) {
    refuse({{-1, 0}, {0, 0}, mode});
    refuse({{1}, {1}, mode});
  }
  refuse({{4, 0}, {0, 0}, Mode::kReflect});
  refuse({{0, 0}, {0, 5}, Mode::kReflect});
  refuse({{1, 6}, {0, 0}, Mode::kCircular});
  refuse({{-2, 0}, {-2, 0}});
}

}  // namespace
}  // namespace tessera::pad_test
