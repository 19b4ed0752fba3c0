// Max and average pooling with random windows on one to three spatial axes.

#include "tessera/ops/pool/pooling.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::pooling_test {
namespace {

enum class Kind { kMax, kAverage };

ValueId pool(Graph& graph, Kind kind, const Shape& shape, const PoolOptions& options) {
  const ValueId x = graph.add_input("x", ValueType::image(shape));
  return kind == Kind::kMax ? max_pool(graph, x, "pool", options)
                            : average_pool(graph, x, "pool", options);
}

void check(Kind kind, const Shape& shape, const PoolOptions& options, uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}, {} by kernel {}, stride {}, padding {}, dilation {}", seed,
                           to_string(shape), to_string(options.kernel), to_string(options.stride),
                           to_string(options.padding), to_string(options.dilation)));
  Graph graph;
  pool(graph, kind, shape, options);
  check_graph_node(graph, seed);
}

struct RandomPool {
  explicit RandomPool(std::mt19937_64& engine) {
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    shape = {between(1, 2), between(1, 3)};
    options.padding.clear();
    const int64_t num_spatial = between(1, 3);
    const bool own_stride = between(0, 2) > 0;
    for (int64_t axis = 0; axis < num_spatial; ++axis) {
      options.kernel.push_back(between(1, 4));
      options.padding.push_back(between(0, options.kernel.back() / 2));
      if (own_stride) options.stride.push_back(between(1, 4));
      shape.push_back(between(4, 13));
    }
    options.ceil_mode = between(0, 1);
    options.count_include_pad = between(0, 1);
    if (between(0, 3) == 0) options.divisor_override = between(1, 5);
    dilation = between(1, 3);
  }

  PoolOptions options;
  int64_t dilation;
  Shape shape;
};

class RandomPooling : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomPooling, AverageMatchesReference) {
  std::mt19937_64 engine(GetParam());
  for (int repeat = 0; repeat < 4; ++repeat) {
    const RandomPool random(engine);
    check(Kind::kAverage, random.shape, random.options, GetParam());
  }
}

TEST_P(RandomPooling, MaxMatchesReference) {
  std::mt19937_64 engine(GetParam());
  for (int repeat = 0; repeat < 4; ++repeat) {
    RandomPool random(engine);
    int64_t smallest = random.shape[2];
    for (size_t axis = 2; axis < random.shape.size(); ++axis)
      smallest = std::min(smallest, random.shape[axis]);
    // So that four taps fit the smallest axis.
    random.options.dilation = {std::min(random.dilation, (smallest - 1) / 3)};
    check(Kind::kMax, random.shape, random.options, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPooling, testing::Range<uint64_t>(0, 15));

TEST(Pooling, CrossesRowParts) {
  check(Kind::kMax, {1, 2, 5000}, {.kernel = {3}, .stride = {2}, .padding = {1}}, 1);
  check(Kind::kAverage, {1, 2, 5000}, {.kernel = {3}, .stride = {2}, .padding = {1}}, 2);
  check(Kind::kMax, {1, 1, 4, 2600}, {.kernel = {2, 2}}, 3);
}

TEST(MaxPool, CodesOfLargeKernelsAreInts) {
  for (const int64_t width : {15, 16}) {
    Graph graph;
    const PoolOptions options{.kernel = {17, width}, .stride = {3, 2}};
    pool(graph, Kind::kMax, {1, 2, 24, 21}, options);
    const Node& node = graph.node(0);
    const Saved saved = node.op->saved(Box::whole(node.types.output.shape()), node.types);
    EXPECT_EQ(saved.type, width == 15 ? at::kByte : at::kInt);
    EXPECT_EQ(saved.numel, Box::whole(node.types.output.shape()).volume());
    check_graph_node(graph, 4);
  }
}

/// The first of equal values takes the gradient, NaN wins over all, and -inf is a value.
TEST(MaxPool, DecidesTiesAndNanAsPyTorch) {
  const ValueType type = ValueType::image({2, 2, 12, 13});
  at::manual_seed(6);
  at::Tensor x = at::randint(0, 3, type.shape(), at::kDouble);
  x.masked_fill_(at::rand(type.shape()) < 0.05, std::numeric_limits<double>::quiet_NaN());
  x.narrow(2, 0, 6).masked_fill_(at::rand({2, 2, 6, 13}) < 0.8,
                                 -std::numeric_limits<double>::infinity());
  Graph graph;
  pool(graph, Kind::kMax, type.shape(), {.kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}});
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    check_op(*graph.node(0).op, {type}, {x}, {}, {}, seed);
  }
}

TEST(Pooling, MultipliesStrides) {
  Graph graph;
  const ValueId y = pool(graph, Kind::kMax, {1, 1, 12, 12}, {.kernel = {3, 2}, .stride = {3, 2}});
  EXPECT_EQ(graph.type(y).shape(), (Shape{1, 1, 4, 6}));
  EXPECT_EQ(graph.type(y).axes[2].stride, Ratio::of(3, 1));
  EXPECT_EQ(graph.type(y).axes[3].stride, Ratio::of(2, 1));
}

TEST(Pooling, RefusesWhatPyTorchRefuses) {
  const auto refuse = [](Kind kind, const PoolOptions& options) {
    Graph graph;
    EXPECT_THROW(pool(graph, kind, {1, 1, 4, 5}, options), InvalidInput);
  };
  refuse(Kind::kMax, {.kernel = {3, 3}, .padding = {2}});
  refuse(Kind::kAverage, {.kernel = {6, 1}});
  refuse(Kind::kMax, {.kernel = {2, 2, 2}});
  refuse(Kind::kMax, {.kernel = {2, 2}, .stride = {0}});
  refuse(Kind::kMax, {.kernel = {}});
  refuse(Kind::kAverage, {.kernel = {2, 2}, .dilation = {2}});
  refuse(Kind::kAverage, {.kernel = {2, 2}, .divisor_override = -1});
  // Its taps at -1 and 4 step over the axis of size 4.
  refuse(Kind::kMax, {.kernel = {2, 1}, .padding = {1, 0}, .dilation = {5, 1}});
}

}  // namespace
}  // namespace tessera::pooling_test
