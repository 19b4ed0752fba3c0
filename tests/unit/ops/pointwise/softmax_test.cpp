#include "tessera/ops/pointwise/softmax.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::softmax_test {
namespace {

using Form = SoftmaxOptions::Form;

/// The type of an image, or of batch x channels.
ValueType type_of(const Shape& shape) {
  ValueType type = ValueType::image(shape.size() > 2 ? shape : Shape{shape[0], shape[1], 1});
  type.axes.resize(shape.size());
  return type;
}

class SoftmaxOfChannels : public testing::TestWithParam<uint64_t> {
 protected:
  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, SoftmaxOfChannels, testing::Range<uint64_t>(1, 26));

std::shared_ptr<const Op> make_op(Form form, int64_t groups = 1) {
  Graph graph;
  softmax(graph, graph.add_input("x", ValueType::image({1, 2 * groups, 3})), "softmax",
          {form, groups});
  return graph.node(0).op;
}

void check(Form form, const at::Tensor& x, uint64_t seed, int64_t groups = 1) {
  check_op(*make_op(form, groups), {type_of(x.sizes().vec())}, {x}, {}, {}, seed);
}

TEST_P(SoftmaxOfChannels, RandomShapes) {
  Shape shape{draw.between(1, 3), draw.between(1, 6)};
  for (int64_t axis = draw.between(0, 3); axis > 0; --axis) shape.push_back(draw.between(1, 9));
  for (Form form : {Form::kSoftmax, Form::kLogSoftmax})
    check(form, draw.uniform(shape, -4, 4), GetParam());
}

TEST_P(SoftmaxOfChannels, GroupsOfChannels) {
  const int64_t groups = draw.between(2, 4);
  Shape shape{draw.between(1, 3), groups * draw.between(1, 4)};
  for (int64_t axis = draw.between(0, 3); axis > 0; --axis) shape.push_back(draw.between(1, 9));
  for (Form form : {Form::kSoftmax, Form::kLogSoftmax})
    check(form, draw.uniform(shape, -4, 4), GetParam(), groups);
}

TEST(Softmax, RowsOfSeveralTiles) {
  Draw draw(3);
  for (Form form : {Form::kSoftmax, Form::kLogSoftmax}) {
    check(form, draw.uniform({1, 5, 300}, -4, 4), 3);
    check(form, draw.uniform({300, 5}, -4, 4), 4);
  }
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  Draw draw(5);
  for (Form form : {Form::kSoftmax, Form::kLogSoftmax}) {
    check(form, draw.uniform({2, 4, 6, 5}, -4, 4) + 1e4, 5);
    check(form, draw.uniform({2, 4, 6, 5}, -1e3, 1e3), 6);
  }
}

TEST(Softmax, KindsAndRefusals) {
  EXPECT_EQ(make_op(Form::kSoftmax)->kind(), "softmax");
  EXPECT_EQ(make_op(Form::kLogSoftmax)->kind(), "log_softmax");
  EXPECT_TRUE(make_op(Form::kSoftmax)->keeps_output());
  EXPECT_FALSE(make_op(Form::kSoftmax)->keeps_input(0));
  Graph graph;
  ValueType labels = ValueType::image({1, 2, 6});
  labels.element = Element::kIndex;
  EXPECT_THROW(softmax(graph, graph.add_input("t", labels), "s"), InvalidInput);
  const ValueId five = graph.add_input("five", ValueType::image({1, 5, 3}));
  EXPECT_THROW(softmax(graph, five, "s", {Form::kSoftmax, 2}), InvalidInput);
  EXPECT_THROW(softmax(graph, five, "s", {Form::kSoftmax, 0}), InvalidInput);
  ValueType target = ValueType::image({1, 2, 6});
  target.axes.erase(target.axes.begin() + 1);
  EXPECT_THROW(softmax(graph, graph.add_input("y", target), "s"), InvalidInput);
}

}  // namespace
}  // namespace tessera::softmax_test
