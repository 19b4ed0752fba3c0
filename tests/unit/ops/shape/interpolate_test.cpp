// Interpolation to random sizes and by random scales, on one to three spatial axes.

#include "tessera/ops/shape/interpolate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::interpolate_test {
namespace {

namespace functional = torch::nn::functional;

using Mode = InterpolationMode;

struct RandomInterpolation {
  explicit RandomInterpolation(std::mt19937_64& engine) {
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    options.mode = static_cast<Mode>(between(0, 3));
    const bool nearest = options.mode == Mode::kNearest || options.mode == Mode::kNearestExact;
    if (!nearest && between(0, 1)) options.corners = Corners::kAligned;
    shape = {between(1, 2), between(1, 3)};
    const bool by_size = between(0, 2) == 0;
    options.recompute_scale_factor = !by_size && between(0, 2) == 0;
    for (int64_t axis = options.mode == Mode::kCubic ? 2 : between(1, 3); axis > 0; --axis) {
      shape.push_back(between(2, 9));
      if (by_size)
        options.size.push_back(between(1, 17));
      else
        options.scale.push_back(between(0, 1) ? static_cast<double>(between(1, 6)) / 2
                                              : std::uniform_real_distribution(0.5, 3.1)(engine));
      if (!by_size && ambiguous(shape.back(), options.scale.back())) options.scale.back() = 3;
    }
  }

  /// Refused for nearest and cubic; see RefusesScalesThatPyTorchReadsTwoWays.
  static bool ambiguous(int64_t size, double scale) {
    const auto output_size = static_cast<int64_t>(static_cast<double>(size) * scale);
    return (output_size == size && scale != 1) || (output_size == 2 * size && scale != 2);
  }

  InterpolateOptions options;
  Shape shape;
};

at::Tensor torch_interpolate(const at::Tensor& x, InterpolateOptions options) {
  const size_t num_spatial = x.dim() - 2;
  functional::InterpolateFuncOptions call;
  if (options.size.size() == 1) options.size.resize(num_spatial, options.size[0]);
  if (options.scale.size() == 1) options.scale.resize(num_spatial, options.scale[0]);
  if (!options.size.empty()) call.size(options.size);
  if (!options.scale.empty())
    call.scale_factor(options.scale).recompute_scale_factor(options.recompute_scale_factor);
  if (options.mode == Mode::kNearest) return functional::interpolate(x, call.mode(torch::kNearest));
  call.align_corners(options.corners == Corners::kAligned);
  if (options.mode == Mode::kNearestExact)
    return functional::interpolate(x, call.mode(torch::kNearestExact));
  if (options.mode == Mode::kCubic) return functional::interpolate(x, call.mode(torch::kBicubic));
  if (x.dim() == 3) return functional::interpolate(x, call.mode(torch::kLinear));
  if (x.dim() == 4) return functional::interpolate(x, call.mode(torch::kBilinear));
  return functional::interpolate(x, call.mode(torch::kTrilinear));
}

void check(const Shape& shape, const InterpolateOptions& options, uint64_t seed) {
  Graph graph;
  interpolate(graph, graph.add_input("x", ValueType::image(shape)), "up", options);
  SCOPED_TRACE(fmt::format("seed {}, {}, {}, recompute {}", seed, to_string(shape),
                           graph.node(0).op->settings(), options.recompute_scale_factor));
  check_graph_node(graph, seed);

  ReferenceArgs args;
  args.inputs = {at::rand(shape, at::kDouble)};
  const at::Tensor expected = torch_interpolate(args.inputs[0], options);
  const at::Tensor got = graph.node(0).op->reference(args);
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_TRUE(at::equal(got, expected)) << "the reference differs from interpolate()";
}

class RandomInterpolate : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomInterpolate, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  for (int repeat = 0; repeat < 4; ++repeat) {
    const RandomInterpolation random(engine);
    check(random.shape, random.options, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomInterpolate, testing::Range<uint64_t>(0, 40));

TEST(Interpolate, DoublesImages) {
  check({1, 2, 7, 9}, {.mode = Mode::kLinear, .scale = {2}}, 1);
  check({1, 2, 7, 9}, {.mode = Mode::kNearest, .scale = {2}}, 2);
  check({1, 2, 7, 9}, {.mode = Mode::kNearestExact, .scale = {2}}, 3);
  check({1, 2, 7, 9}, {.mode = Mode::kCubic, .scale = {2}}, 4);
}

/// All four taps of a cubic output can fall on one or two pixels.
TEST(Interpolate, CubicOfTinyImages) {
  for (Corners corners : {Corners::kNotAligned, Corners::kAligned}) {
    check({1, 1, 1, 2}, {.mode = Mode::kCubic, .corners = corners, .size = {5, 7}}, 5);
    check({1, 1, 3, 2}, {.mode = Mode::kCubic, .corners = corners, .size = {1, 1}}, 6);
    check({1, 1, 4, 5}, {.mode = Mode::kCubic, .corners = corners, .size = {4, 5}}, 7);
  }
}

TEST(Interpolate, DividesStrides) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 6, 10}));
  const ValueId y = interpolate(graph, x, "up", {.size = {12, 15}});
  EXPECT_EQ(graph.type(y).axes[2].stride, Ratio::of(1, 2));
  EXPECT_EQ(graph.type(y).axes[3].stride, Ratio::of(2, 3));
}

TEST(Interpolate, NearestCopiesInfinity) {
  Graph graph;
  const ValueType type = ValueType::image({1, 1, 4, 5});
  interpolate(graph, graph.add_input("x", type), "up", {.scale = {2}});
  const at::Tensor x = at::full(type.shape(), std::numeric_limits<double>::infinity(), at::kDouble);
  check_op(*graph.node(0).op, {type}, {x}, {}, {}, 3);
}

/// 7 * 2.05 gives 14 outputs. PyTorch's forward reads input floor(o / 2.05) for contiguous tensors
/// and floor(o / 2) for channels-last ones, and its backward floor(o / 2) for both.
TEST(Interpolate, RefusesScalesThatPyTorchReadsTwoWays) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 7}));
  EXPECT_THROW(interpolate(graph, x, "up", {.scale = {2.05}}), InvalidInput);
  EXPECT_THROW(interpolate(graph, x, "up", {.scale = {1.1}}), InvalidInput);
  EXPECT_NO_THROW(interpolate(graph, x, "up", {.scale = {2.05}, .recompute_scale_factor = true}));
  EXPECT_NO_THROW(interpolate(graph, x, "up", {.mode = Mode::kLinear, .scale = {2.05}}));
  EXPECT_NO_THROW(interpolate(graph, x, "up", {.mode = Mode::kNearestExact, .scale = {2.05}}));
  const ValueId image = graph.add_input("image", ValueType::image({1, 1, 7, 7}));
  const Mode cubic = Mode::kCubic;
  EXPECT_THROW(interpolate(graph, image, "up", {.mode = cubic, .scale = {1.1}}), InvalidInput);
  EXPECT_NO_THROW(interpolate(graph, image, "up", {.mode = cubic, .scale = {1.1, 2}}));
  EXPECT_NO_THROW(interpolate(graph, image, "up",
                              {.mode = cubic, .corners = Corners::kAligned, .scale = {1.1}}));
}

TEST(Interpolate, RefusesWhatPyTorchRefuses) {
  const auto refuse = [](const InterpolateOptions& options) {
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image({1, 1, 4, 5}));
    EXPECT_THROW(interpolate(graph, x, "up", options), InvalidInput);
  };
  refuse({});
  refuse({.size = {4}, .scale = {1}});
  refuse({.size = {4, 4, 4}});
  refuse({.size = {0}});
  refuse({.scale = {0.1}});
  refuse({.scale = {-1}});
  refuse({.size = {4}, .recompute_scale_factor = true});
  refuse({.mode = Mode::kNearest, .corners = Corners::kAligned, .scale = {2}});
  refuse({.mode = Mode::kNearestExact, .corners = Corners::kAligned, .scale = {2}});
  for (const Shape& shape : {Shape{1, 1, 4}, Shape{1, 1, 4, 4, 4}}) {
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image(shape));
    EXPECT_THROW(interpolate(graph, x, "up", {.mode = Mode::kCubic, .scale = {2}}), InvalidInput);
  }
}

}  // namespace
}  // namespace tessera::interpolate_test
