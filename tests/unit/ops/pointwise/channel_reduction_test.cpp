#include "tessera/ops/pointwise/channel_reduction.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::channel_reduction_test {
namespace {

using How = ChannelReductionOptions::How;

/// The type of an image, or of batch x channels.
ValueType type_of(const Shape& shape) {
  ValueType type = ValueType::image(shape.size() > 2 ? shape : Shape{shape[0], shape[1], 1});
  type.axes.resize(shape.size());
  return type;
}

class ReductionOfChannels : public testing::TestWithParam<uint64_t> {
 protected:
  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, ReductionOfChannels, testing::Range<uint64_t>(1, 26));

void check(How how, const at::Tensor& x, uint64_t seed) {
  Graph graph;
  const ValueType type = type_of(x.sizes().vec());
  channel_reduction(graph, graph.add_input("x", type), "reduce", {how});
  check_op(*graph.node(0).op, {type}, {x}, {}, {}, seed);
}

TEST_P(ReductionOfChannels, RandomShapes) {
  Shape shape{draw.between(1, 3), draw.between(1, 6)};
  for (int64_t axis = draw.between(0, 3); axis > 0; --axis) shape.push_back(draw.between(1, 9));
  for (How how : {How::kSum, How::kMean, How::kMax})
    check(how, draw.uniform(shape, -1, 1), GetParam());
}

TEST_P(ReductionOfChannels, TiesGoToTheFirst) {
  check(How::kMax, draw.labels({2, 5, 7, 6}, 3).to(at::kDouble), GetParam());
}

TEST(ChannelReduction, RowsOfSeveralTilesAndManyChannels) {
  Draw draw(3);
  for (How how : {How::kSum, How::kMean, How::kMax}) {
    check(how, draw.uniform({1, 5, 300}, -1, 1), 3);
    check(how, draw.uniform({300, 5}, -1, 1), 4);
    check(how, draw.uniform({1, 256, 5}, -1, 1), 5);
    check(how, draw.uniform({2, 700, 5}, -1, 1), 6);
  }
}

TEST(ChannelReduction, NanIsTheMaximum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor x = at::tensor({1., nan, nan, infinity, -infinity,  //
                                   nan, 1., nan, nan, -infinity,       //
                                   nan, infinity, 0., nan, -infinity},
                                  at::kDouble)
                           .view({1, 3, 5});
  check(How::kMax, x, 1);
}

TEST(ChannelReduction, TypesKindsAndRefusals) {
  Graph graph;
  ValueType type = ValueType::image({2, 6, 5, 4});
  type.axes[2].stride = Ratio::of(4, 1);
  const ValueId x = graph.add_input("x", type);
  for (How how : {How::kSum, How::kMean, How::kMax}) {
    const ValueType reduced = graph.type(channel_reduction(graph, x, "reduce", {how}));
    EXPECT_EQ(reduced.shape(), (Shape{2, 1, 5, 4}));
    EXPECT_EQ(reduced.axes[2].stride, Ratio::of(4, 1));
  }
  EXPECT_EQ(graph.node(0).op->kind(), "channel_sum");
  EXPECT_EQ(graph.node(1).op->kind(), "channel_mean");
  EXPECT_EQ(graph.node(2).op->kind(), "channel_max");
  type.element = Element::kIndex;
  EXPECT_THROW(channel_reduction(graph, graph.add_input("t", type), "r", {}), InvalidInput);
}

}  // namespace
}  // namespace tessera::channel_reduction_test
