// Operands: parts of a tensor by the box of the value that they cover.

#include <gtest/gtest.h>

#include "tessera/graph/op.h"
#include "tests/unit/refusal.h"

namespace tessera::operand_test {
namespace {

/// Rows 10 to 14 and columns 20 to 23 of a value; element (r, c) is 100 r + c.
Operand some_operand() {
  const at::Tensor rows = at::arange(10, 14, at::kLong), columns = at::arange(20, 23, at::kLong);
  return {100 * rows.view({4, 1}) + columns.view({1, 3}), Box{{10, 14}, {20, 23}}};
}

TEST(Operand, AViewIsByGlobalCoordinates) {
  const at::Tensor view = some_operand().view(Box{{11, 13}, {22, 23}});
  EXPECT_TRUE(view.equal(at::tensor({1122, 1222}, at::kLong).view({2, 1}))) << view;
}

TEST(Operand, AViewSharesTheMemory) {
  const Operand operand = some_operand();
  operand.view(Box{{13, 14}, {20, 22}}).zero_();
  EXPECT_TRUE(operand.tensor[3].equal(at::tensor({0, 0, 1322}, at::kLong))) << operand.tensor;
  EXPECT_TRUE(operand.view(operand.box).is_same(operand.tensor));
}

TEST(Operand, AnEmptyViewMayLieAnywhere) {
  EXPECT_EQ(some_operand().view(Box{{50, 50}, {20, 23}}).sizes(), (Shape{0, 3}));
}

TEST(Operand, AViewOutsideIsABug) {
  const auto view = [] { some_operand().view(Box{{10, 15}, {20, 23}}); };
  EXPECT_NE(message_of<InternalError>(view).find("does not lie in"), std::string::npos);
}

}  // namespace
}  // namespace tessera::operand_test
