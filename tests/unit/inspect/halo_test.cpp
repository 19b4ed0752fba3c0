// What operators read beyond their half, against the numbers of their windows.

#include "tessera/inspect/halo.h"

#include <gtest/gtest.h>

#include "tessera/inspect/table.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tests/unit/inspect/example_graphs.h"

namespace tessera::halo_test {
namespace {

using Halo = std::vector<HaloAxis>;

/// The halo of the last operator that `build(graph, image)` adds.
template <class Build>
Halo halo_of(const Shape& shape, Build build) {
  Graph graph = image_graph(shape);
  build(graph, ValueId{0});
  return operator_halo(graph.nodes().back());
}

Halo convolution_halo(const ConvolutionOptions& options, const Shape& shape = {1, 1, 64}) {
  return halo_of(shape, [&](Graph& g, ValueId x) { convolution(g, x, "conv", options); });
}

TEST(Halo, Convolutions) {
  EXPECT_EQ(convolution_halo({1, {3}, {1}, {1}, {1}}), (Halo{{1, 1}}));
  EXPECT_EQ(convolution_halo({1, {5}, {1}, {1}, {2}}), (Halo{{2, 2}}));
  EXPECT_EQ(convolution_halo({1, {1}}), (Halo{{0, 0}}));
  EXPECT_EQ(convolution_halo({1, {3}, {1}, {6}, {6}}), (Halo{{6, 6}}));  // dilated
  EXPECT_EQ(convolution_halo({1, {7}, {2}, {1}, {3}}), (Halo{{3, 2}}));  // strided
  EXPECT_EQ(convolution_halo({1, {3}, {2}, {1}, {1}}), (Halo{{1, 0}}));
  EXPECT_EQ(convolution_halo({1, {2}, {2}}), (Halo{{0, 0}}));
}

TEST(Halo, ConvolutionsWithoutPaddingKeepTheMiddle) {
  EXPECT_EQ(convolution_halo({1, {3}}), (Halo{{1, 1}}));
  EXPECT_EQ(convolution_halo({1, {5}}, {1, 1, 63}), (Halo{{2, 2}}));
}

TEST(Halo, EachAxisHasItsOwn) {
  const Halo halo = convolution_halo({.out_channels = 1, .kernel = {1, 3, 5}, .padding = {0, 1, 2}},
                                     {1, 1, 16, 16, 16});
  EXPECT_EQ(halo, (Halo{{0, 0}, {1, 1}, {2, 2}}));
}

TEST(Halo, OddSizesDoNotWidenIt) {
  for (int64_t size : {31, 33, 50, 61}) {
    SCOPED_TRACE(size);
    const Shape shape{1, 1, size};
    EXPECT_EQ(convolution_halo({1, {3}, {1}, {1}, {1}}, shape), (Halo{{1, 1}}));
    EXPECT_EQ(halo_of(shape, [](Graph& g, ValueId x) { max_pool(g, x, "pool", {{2}}); }),
              (Halo{{0, 0}}));
  }
}

TEST(Halo, Resizing) {
  const Shape shape{1, 1, 32};
  EXPECT_EQ(halo_of(shape,
                    [](Graph& g, ValueId x) {
                      transposed_convolution(g, x, "up",
                                             {.out_channels = 1, .kernel = {2}, .stride = {2}});
                    }),
            (Halo{{0, 0}}));
  EXPECT_EQ(halo_of(shape,
                    [](Graph& g, ValueId x) {
                      interpolate(g, x, "up", {.mode = InterpolationMode::kLinear, .scale = {2}});
                    }),
            (Halo{{1, 1}}));
  EXPECT_EQ(halo_of(shape, [](Graph& g, ValueId x) { interpolate(g, x, "up", {.scale = {2}}); }),
            (Halo{{0, 0}}));
}

TEST(Halo, PointwiseAndPaddingNeedNone) {
  const Shape shape{1, 1, 20};
  EXPECT_EQ(halo_of(shape, [](Graph& g, ValueId x) { relu(g, x, "relu"); }), (Halo{{0, 0}}));
  EXPECT_EQ(halo_of(shape, [](Graph& g, ValueId x) { add(g, x, x, "add"); }), (Halo{{0, 0}}));
  EXPECT_EQ(halo_of(shape,
                    [](Graph& g, ValueId x) {
                      pad(g, x, "pad", {{0}, {7}});
                    }),
            (Halo{{0, 0}}));
  EXPECT_EQ(halo_of(shape,
                    [](Graph& g, ValueId x) {
                      pad(g, x, "crop", {{-5}, {0}});
                    }),
            (Halo{{0, 0}}));
}

TEST(Halo, GlobalOperatorsReadAll) {
  const Shape shape{1, 2, 16, 16};
  const auto pool = halo_of(shape, [](Graph& g, ValueId x) { global_average_pool(g, x); });
  EXPECT_EQ(to_string(pool), "all");
  const auto flat = halo_of(shape, [](Graph& g, ValueId x) { flatten(g, x); });
  EXPECT_EQ(to_string(flat), "all");
  // A window that is as large as the image.
  EXPECT_EQ(to_string(convolution_halo({1, {15}, {1}, {1}, {7}}, {1, 1, 6, 6})), "all");
}

TEST(Halo, WithoutSpaceThereIsNone) {
  Graph graph = image_graph({1, 2, 4});
  linear(graph, flatten(graph, 0), "head", {.out_features = 2});
  EXPECT_TRUE(operator_halo(graph.nodes().back()).empty());
}

TEST(Halo, OnePixelIsNotCut) {
  EXPECT_EQ(convolution_halo({1, {3}, {1}, {1}, {1}}, {1, 1, 1}), (Halo{{0, 0}}));
}

TEST(Halo, ALossReadsItsOwnPixels) {
  Graph graph = image_graph({1, 3, 16, 16});
  cross_entropy(graph, 0, add_target(graph, 0, "target"), "loss");
  EXPECT_EQ(operator_halo(graph.nodes().back()), (Halo{{0, 0}, {0, 0}}));
}

}  // namespace
}  // namespace tessera::halo_test
