// Axes taken apart and put together, and products over parts of axes, on pieces that do not lie on
// the borders of digits.

#include "tessera/ops/shape/arrangement.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::arrangement_test {
namespace {

ValueId image(Graph& graph, const std::string& name, const Shape& shape) {
  return graph.add_input(name, ValueType::image(shape));
}

/// Random letters on the axes of an image and of an output.
class RandomArrangements : public testing::TestWithParam<uint64_t> {
 protected:
  int64_t below(int64_t limit) { return static_cast<int64_t>(engine() % limit); }
  int new_letter(Arrangement& arrangement) {
    arrangement.sizes.push_back(1 + below(4));
    return static_cast<int>(arrangement.sizes.size()) - 1;
  }
  /// Letters in a random order on the channels and up to three more axes.
  Lettering spread(std::vector<int> letters) {
    std::shuffle(letters.begin(), letters.end(), engine);
    Lettering lettering(2 + below(4));
    lettering[0] = {0};
    for (int letter : letters) lettering[1 + below(std::ssize(lettering) - 1)].push_back(letter);
    return lettering;
  }
  Shape shape_of(const Arrangement& arrangement, const Lettering& lettering) {
    Shape shape;
    for (const std::vector<int>& axis : lettering) {
      shape.push_back(1);
      for (int letter : axis) shape.back() *= arrangement.sizes[letter];
    }
    return shape;
  }
  ValueId input(const Arrangement& arrangement, const Lettering& lettering) {
    const Shape shape = shape_of(arrangement, lettering);
    ValueType type;
    if (shape.size() == 2)
      type.axes = {{AxisKind::kBatch, shape[0], -1, {}}, {AxisKind::kChannel, shape[1], -1, {}}};
    else
      type = ValueType::image(shape);
    return graph.add_input("x" + std::to_string(graph.values().size()), type);
  }
  void check() {
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + ": " + graph.node(0).op->settings());
    check_graph_node(graph, GetParam());
  }

  std::mt19937_64 engine{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomArrangements, testing::Range<uint64_t>(0, 60));

TEST_P(RandomArrangements, OfOneInput) {
  Arrangement arrangement{{1 + below(3)}, {}, {}};
  std::vector<int> letters;
  for (int64_t count = 1 + below(5); count > 0; --count) letters.push_back(new_letter(arrangement));
  arrangement.from = {spread(letters)};
  if (below(3) == 0) letters.pop_back();  // summed over
  arrangement.to = spread(letters);
  rearrange(graph, input(arrangement, arrangement.from[0]), "rearrange", arrangement);
  check();
}

TEST_P(RandomArrangements, OfTwoInputs) {
  Arrangement arrangement{{1 + below(3)}, {}, {}};
  std::vector<int> left, right, out;
  for (int64_t count = 1 + below(5); count > 0; --count) {
    const int letter = new_letter(arrangement);
    const int64_t where = below(4);  // left and out, right and out, both, all
    if (where != 1) left.push_back(letter);
    if (where != 0) right.push_back(letter);
    if (where != 2) out.push_back(letter);
  }
  arrangement.from = {spread(left), spread(right)};
  arrangement.to = spread(out);
  const ValueId a = input(arrangement, arrangement.from[0]);
  contract(graph, a, input(arrangement, arrangement.from[1]), "product", arrangement);
  check();
}

TEST(Arrangements, AttentionNeedsAllPixelsOfTheOther) {
  Graph graph;
  const ValueId q = image(graph, "q", {2, 3, 4, 5}), k = image(graph, "k", {2, 3, 2, 7});
  // n, c, h, w of q, h and w of k
  contract(
      graph, q, k, "scores",
      {{2, 3, 4, 5, 2, 7}, {{{0}, {1}, {2}, {3}}, {{0}, {1}, {4}, {5}}}, {{0}, {4, 5}, {2}, {3}}});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.types.output.shape(), (Shape{2, 14, 4, 5}));
  const Box out{{1, 2}, {0, 14}, {1, 3}, {0, 5}};
  EXPECT_EQ(node.op->needed(0, out, node.types), (Box{{1, 2}, {0, 3}, {1, 3}, {0, 5}}));
  EXPECT_EQ(node.op->needed(1, out, node.types), (Box{{1, 2}, {0, 3}, {0, 2}, {0, 7}}));
}

TEST(Arrangements, WindowsNeedTheWindowsThatTheyTouch) {
  Graph graph;
  const ValueId q = image(graph, "q", {1, 3, 12, 4}), k = image(graph, "k", {1, 3, 12, 4});
  // n, c, window, row in it, column; row and column of the other
  contract(graph, q, k, "scores",
           {{1, 3, 3, 4, 4, 4, 4},
            {{{0}, {1}, {2, 3}, {4}}, {{0}, {1}, {2, 5}, {6}}},
            {{0}, {5, 6}, {2, 3}, {4}}});
  const Node& node = graph.node(0);
  const Box out{{0, 1}, {0, 16}, {3, 7}, {0, 4}};
  EXPECT_EQ(node.op->needed(0, out, node.types)[2], (Range{3, 7}));
  EXPECT_EQ(node.op->needed(1, out, node.types)[2], (Range{0, 8}));
}

TEST(Arrangements, ChannelsAndPixelsTradePlaces) {
  Graph graph;
  const ValueId x = image(graph, "x", {2, 5, 3, 4});
  const ValueType type = graph.type(
      rearrange(graph, x, "tokens", {{2, 5, 3, 4}, {{{0}, {1}, {2}, {3}}}, {{0}, {2, 3}, {1}}}));
  EXPECT_EQ(type.shape(), (Shape{2, 12, 5}));
  EXPECT_EQ(type.axes[2].kind, AxisKind::kSpatial);
  check_graph_node(graph, 3);
}

TEST(Arrangements, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = image(graph, "x", {2, 6, 4});
  const auto refused = [&](const Arrangement& arrangement) {
    EXPECT_THROW(rearrange(graph, x, "refused", arrangement), InvalidInput);
  };
  refused({{2, 5, 4}, {{{0}, {1}, {2}}}, {{0}, {1}, {2}}});        // 5 channels
  refused({{2, 6, 4}, {{{0}, {1}, {2}}}, {{0}, {1, 1}, {2}}});     // a letter twice
  refused({{2, 6, 4}, {{{0}, {1}, {2}}}, {{1}, {0}, {2}}});        // another batch
  refused({{2, 6, 4}, {{{0}, {1}, {2}}}, {{0, 2}, {1}}});          // pixels in the batch
  refused({{2, 6, 4, 1}, {{{0}, {1}, {2}}}, {{0}, {1}, {2, 3}}});  // a letter from nowhere
  refused({{2, 6, 4}, {{{0}, {1}}}, {{0}, {1}}});                  // an axis less
  refused({{2, 6, 4}, {{{0}, {1}, {7}}}, {{0}, {1}, {2}}});        // no such letter
  refused({{2, 0, 4}, {{{0}, {1}, {2}}}, {{0}, {1}, {2}}});        // an empty letter
  EXPECT_THROW(contract(graph, x, x, "refused",  // pixels of the second alone are summed first
                        {{2, 6, 4, 4}, {{{0}, {1}, {2}}, {{0}, {1}, {3}}}, {{0}, {1}, {2}}}),
               InvalidInput);
}

}  // namespace
}  // namespace tessera::arrangement_test
