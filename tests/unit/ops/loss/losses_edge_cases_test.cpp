// Where losses could break: long rows, threads, huge scores, nothing that counts, empty pieces,
// wrong labels, and what is refused.

#include <ATen/Parallel.h>

#include "tessera/base/error.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tests/unit/ops/loss/loss_case.h"

namespace tessera::losses_edge_cases_test {
namespace {

const std::vector<AddLoss>& losses_on_labels() {
  static const std::vector<AddLoss> all{bce(), dice(),
                                        dice({.activation = DiceOptions::Activation::kSoftmax}),
                                        focal(), focal({.form = kSoftmaxFocal})};
  return all;
}

TEST(Losses, RowsLongerThanATile) {
  for (const AddLoss& add : losses_on_labels()) {
    LossCase loss({2, 3, 2, 300}, Element::kIndex, add);
    loss.ignore_some(-100);
    for (uint64_t seed = 1; seed <= 3; ++seed) loss.check(seed);
  }
}

TEST(Losses, DoNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const AddLoss& add : losses_on_labels()) {
    const LossCase loss({2, 3, 130, 300}, Element::kIndex, add);
    at::set_num_threads(1);
    const auto [one, one_gradient] = loss.run();
    at::set_num_threads(3);
    const auto [three, three_gradient] = loss.run();
    at::set_num_threads(threads);
    EXPECT_EQ(one, three);
    EXPECT_TRUE(at::equal(one_gradient, three_gradient));
  }
}

TEST(Losses, LargeScoresStayFinite) {
  std::vector<AddLoss> losses = losses_on_labels();
  losses.push_back(focal({.gamma = 0.5}));  // PyTorch's gradient is NaN here
  losses.push_back(focal({.gamma = 0.5, .form = kSoftmaxFocal}));
  for (const AddLoss& add : losses) {
    LossCase loss({2, 3, 5, 4}, Element::kIndex, add);
    loss.prediction.mul_(1000);
    const auto [value, gradient] = loss.run();
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
  }
}

TEST(Losses, LargeScoresMatchPyTorch) {
  for (const AddLoss& add : losses_on_labels()) {
    LossCase loss({2, 3, 5, 4}, Element::kIndex, add);
    loss.prediction.mul_(1000);
    loss.check(1);
  }
}

TEST(Losses, AllIgnoredIsNanForMeansAndZeroForDice) {
  for (const AddLoss& add : losses_on_labels()) {
    LossCase loss({2, 3, 5}, Element::kIndex, add);
    loss.target.fill_(-100);
    loss.check(1);  // gradients are 0 in any case
  }
}

TEST(Losses, EmptyPieceAddsNothing) {
  for (const AddLoss& add : losses_on_labels()) {
    const LossCase loss({2, 3, 5}, Element::kIndex, add);
    const Statistics sizes = loss.node().op->forward_statistics(loss.node().types);
    KernelArgs args;
    args.name = &loss.node().name;
    args.types = &loss.node().types;
    args.out_box = {{0, 2}, {3, 3}};
    args.inputs = {{{}, {{0, 2}, {0, 3}, {3, 3}}}, {{}, args.out_box}};
    args.grad_inputs = {{at::empty({2, 3, 0}, at::kDouble), args.inputs[0].box}, {}};
    args.loss = at::zeros({}, at::kDouble);
    args.piece_statistics = at::ones({sizes.per_piece}, at::kDouble);
    args.merged_statistics = at::ones({sizes.merged}, at::kDouble);
    loss.node().op->piece_statistics(args);
    loss.node().op->forward(args);
    loss.node().op->input_gradient(args);
    EXPECT_EQ(args.piece_statistics.abs().sum().item<double>(), 0);
    EXPECT_EQ(args.loss.item<double>(), 0);
  }
}

TEST(Losses, DiceOfAPerfectPredictionIsZero) {
  LossCase loss({2, 1, 6, 6}, Element::kIndex,
                dice({.activation = DiceOptions::Activation::kNone}));
  loss.prediction = loss.target.unsqueeze(1).to(at::kDouble);
  EXPECT_EQ(loss.run().first, 0);
  loss.prediction = 1 - loss.prediction;
  EXPECT_NEAR(loss.run().first, 1, 1e-5);
}

TEST(Losses, WrongLabelsAreNamed) {
  for (const AddLoss& add : losses_on_labels()) {
    LossCase loss({2, 3, 5}, Element::kIndex, add);
    loss.target[1][2] = 3;
    try {
      loss.run();
      ADD_FAILURE() << loss.node().op->kind() << " took label 3";
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.what(), fmt::format("[{} loss] label 3 is not in [0, 3) and is not the "
                                          "ignored label -100",
                                          loss.node().op->kind()));
    }
  }
  LossCase binary({2, 1, 5}, Element::kIndex, bce());
  EXPECT_NO_THROW(binary.run());
  binary.target[0][0] = 2;
  EXPECT_THROW(binary.run(), InvalidInput);
}

// A device's labels are refused at the end of the step: until then, the loss is no number.
TEST(Losses, WrongLabelsCanWait) {
  for (const AddLoss& add : losses_on_labels()) {
    LossCase loss({2, 3, 5}, Element::kIndex, add);
    const Node& node = loss.node();
    const int64_t size = node.op->forward_statistics(node.types).per_piece;
    KernelArgs args;
    args.name = &node.name;
    args.types = &node.types;
    args.out_box = Box::whole({2, 5});
    args.illegal_label = at::zeros({}, at::kLong);
    args.piece_statistics = at::empty({size}, at::kDouble);
    const auto look = [&] {
      args.inputs = {{loss.prediction, Box::whole({2, 3, 5})}, {loss.target, args.out_box}};
      node.op->piece_statistics(args);
      return args.illegal_label.item<int64_t>();
    };
    EXPECT_EQ(look(), 0);
    EXPECT_FALSE(args.piece_statistics.isnan().any().item<bool>());
    EXPECT_NO_THROW(node.op->refuse_label(0, node.name, node.types));
    loss.target[1][2] = 3;
    EXPECT_EQ(look(), 3);
    EXPECT_TRUE(args.piece_statistics.isnan().all().item<bool>()) << node.op->kind();
    loss.target[1][2] = 0;
    EXPECT_EQ(look(), 3) << "what another piece has found stays";
    try {
      node.op->refuse_label(3, node.name, node.types);
      ADD_FAILURE() << node.op->kind() << " took label 3";
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.what(), fmt::format("[{} loss] label 3 is not in [0, 3) and is not the "
                                          "ignored label -100",
                                          node.op->kind()));
    }
  }
}

TEST(Losses, SettingsSayWhatIsNotUsual) {
  const auto settings = [](Element element, const AddLoss& add) {
    return LossCase({2, 3, 5}, element, add).node().op->settings();
  };
  EXPECT_EQ(settings(Element::kIndex, bce()), "");
  EXPECT_EQ(settings(Element::kIndex, bce({.pos_weight = {1, 2, 1}, .weight = 0.5})),
            "pos_weight 1/2/1, weight 0.5");
  EXPECT_EQ(settings(Element::kIndex, focal({.alpha = 0.25})), "gamma 2, alpha 0.25");
  EXPECT_EQ(settings(Element::kReal, dice()), "sigmoid, per sample");
}

TEST(Losses, RealTargetsHaveTheGeometryOfThePrediction) {
  const LossCase loss({2, 3, 8, 9}, Element::kReal, dice());
  const Node& node = loss.node();
  EXPECT_TRUE(node.op->is_loss());
  EXPECT_FALSE(node.op->differentiable(1));
  EXPECT_EQ(node.types.output.shape(), (Shape{2, 8, 9}));
  const Box piece{{1, 2}, {0, 4}, {3, 9}}, elements{{1, 2}, {0, 3}, {0, 4}, {3, 9}};
  EXPECT_EQ(node.op->needed(0, piece, node.types), elements);
  EXPECT_EQ(node.op->needed(1, piece, node.types), elements);
}

TEST(Losses, WrongOptionsAreRefused) {
  const auto refused = [](int64_t channels, Element element, const AddLoss& add) {
    EXPECT_THROW(LossCase({2, channels, 5}, element, add), InvalidInput);
  };
  const double nan = std::nan("");
  refused(3, Element::kReal, bce({.pos_weight = {1, 2}}));
  refused(3, Element::kReal, bce({.pos_weight = {-1}}));
  refused(3, Element::kReal, bce({.weight = nan}));
  refused(3, Element::kReal, dice({.smooth = -1}));
  refused(1, Element::kReal, dice({.activation = DiceOptions::Activation::kSoftmax}));
  refused(1, Element::kReal, dice({.include_background = false}));
  refused(3, Element::kReal, focal({.gamma = -1}));
  refused(3, Element::kReal, focal({.alpha = 1.5}));
  refused(3, Element::kReal, focal({.class_weights = {1, 2, 3}}));
  refused(3, Element::kReal, focal({.form = kSoftmaxFocal}));
  refused(3, Element::kIndex, focal({.class_weights = {1, 2}, .form = kSoftmaxFocal}));
  refused(3, Element::kIndex, focal({.alpha = 0.5, .form = kSoftmaxFocal}));
  refused(3, Element::kIndex,
          [](Graph& g, ValueId x, ValueId t) { mean_squared_error(g, x, t, "loss"); });
  refused(3, Element::kReal,
          [](Graph& g, ValueId x, ValueId t) { huber(g, x, t, "loss", {.delta = 0}); });
  refused(3, Element::kReal,
          [](Graph& g, ValueId x, ValueId t) { smooth_l1(g, x, t, "loss", {.beta = -1}); });
}

TEST(Losses, TargetsOfAnotherShapeAreRefused) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 5, 6}));
  const ValueId wider = graph.add_input("wider", ValueType::image({2, 3, 5, 7}));
  const ValueId deeper = graph.add_input("deeper", ValueType::image({2, 4, 5, 6}));
  EXPECT_THROW(mean_squared_error(graph, x, wider, "loss"), InvalidInput);
  EXPECT_THROW(binary_cross_entropy(graph, x, deeper, "loss"), InvalidInput);
  EXPECT_THROW(dice(graph, x, add_target(graph, wider, "labels"), "loss"), InvalidInput);
  EXPECT_THROW(add_real_target(graph, add_target(graph, x, "labels"), "real"), InvalidInput);
}

}  // namespace
}  // namespace tessera::losses_edge_cases_test
