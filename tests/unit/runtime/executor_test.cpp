// A program on one rank: the oracle's numbers, the simulator's bytes, and what becomes of a step
// that fails.

#include "tessera/runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tessera/graph/reference.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/simulate/simulator.h"
#include "tests/unit/graph/two_layers.h"
#include "tests/unit/refusal.h"

namespace tessera::executor_test {
namespace {

/// Runs `body` on the one rank of a program, with what a step of it needs.
void on_one_rank(const Lowering& lowered, at::ScalarType real,
                 const std::function<void(RankSession&, StepContext&)>& body) {
  run_on_threads(1, 1, /*timeout_seconds=*/30, [&](Transport& transport) {
    RankSession session(lowered, transport, {.real = real, .seed = 1, .threads = 1});
    StepContext context;
    context.seed = 1;
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      load_noise(lowered.graph(), input, /*seed=*/1, context.step, box, target);
    };
    body(session, context);
  });
}

bool close(const at::Tensor& ours, const at::Tensor& expected) {
  return at::allclose(ours, expected, 1e-10, 1e-12);
}

/// Copies, because an executor's own tensors go with it.
std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.defined() ? tensor.clone() : at::Tensor());
  return copies;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.defined() ? y.defined() && x.equal(y) : !y.defined();
                    });
}

/// Outputs, gradients and buffers of one step are those of the oracle.
void expect_numbers_of_oracle(const Graph& graph, int64_t step) {
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  const ReferenceResult expected =
      run_reference(graph, noise_inputs(graph, step), parameters, 1, step);
  const Lowering lowered(graph, {}, {.input_gradients = true, .keep_outputs = true});
  on_one_rank(lowered, at::kDouble, [&](RankSession& session, StepContext& context) {
    Executor& executor = session.executor();
    context.step = step;
    executor.run(context);
    EXPECT_NEAR(executor.loss(), expected.loss, 1e-12);
    const Program& program = session.program();
    ASSERT_EQ(program.outputs.size(), 1u);
    EXPECT_TRUE(close(executor.result(program.outputs[0]), expected.outputs[0]));
    ASSERT_EQ(program.input_gradients.size(), 1u);
    EXPECT_TRUE(close(executor.result(program.input_gradients[0]), expected.input_gradients[0]));
    for (size_t id = 0; id < parameters.size(); ++id) {
      const Parameter& parameter = graph.parameters()[id];
      EXPECT_TRUE(close(session.parameters().values()[id], parameters[id])) << parameter.name;
      if (parameter.role == ParameterRole::kBuffer) continue;
      EXPECT_TRUE(close(session.parameters().gradients()[id], expected.gradients[id]))
          << parameter.name;
    }
  });
}

TEST(Executor, GivesTheNumbersOfTheOracle) { expect_numbers_of_oracle(two_layers(), 0); }

TEST(Executor, AddsGradientsWhereBranchesMeetAndDrawsTheSameMasks) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 2, 6, 5}));
  const ConvolutionOptions same{.out_channels = 2, .kernel = {3}, .padding = {1}};
  x = convolution(graph, x, "stem", same);
  const ValueId branch = dropout(graph, convolution(graph, x, "branch", same), "drop", {});
  x = add(graph, x, branch, "sum");
  graph.mark_output(x);
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  for (const int64_t step : {0, 3}) expect_numbers_of_oracle(graph, step);
}

TEST(Executor, HoldsTheBytesThatAreForecast) {
  using enum StepKind;
  for (const StepKind step : {kForward, kGradient, kTrain})
    for (const at::ScalarType real : {at::kFloat, at::kDouble}) {
      const Lowering lowered(two_layers(), {}, {.step = step});
      const RankForecast forecast = simulate(lowered.program(0), real);
      EXPECT_GT(forecast.peak_value_bytes, 0);
      on_one_rank(lowered, real, [&](RankSession& session, StepContext& context) {
        for (context.step = 0; context.step < 2; ++context.step) {
          session.executor().run(context);
          EXPECT_EQ(session.executor().memory().peak_value_bytes, forecast.peak_value_bytes);
        }
        EXPECT_EQ(session.counters().messages, 0);
      });
    }
}

TEST(Executor, RunsTwiceWithTheSameBits) {
  const Lowering lowered(two_layers(), {}, {.input_gradients = true});
  on_one_rank(lowered, at::kFloat, [&](RankSession& session, StepContext& context) {
    const auto run = [&](int64_t step) {
      context.step = step;
      session.executor().run(context);
      std::vector<at::Tensor> results = copies(session.parameters().gradients());
      results.push_back(session.executor().result(session.program().input_gradients[0]).clone());
      results.push_back(at::scalar_tensor(session.executor().loss(), at::kDouble));
      return results;
    };
    const std::vector<at::Tensor> first = run(0);
    EXPECT_TRUE(same_bits(run(0), first));
    EXPECT_FALSE(same_bits(run(1), first)) << "another step has other inputs";
    EXPECT_TRUE(same_bits(run(0), first));
  });
}

TEST(Executor, AddsToTheGradientsWhereAskedTo) {
  const Lowering lowered(two_layers(), {}, {.zero_gradients = false});
  on_one_rank(lowered, at::kDouble, [&](RankSession& session, StepContext& context) {
    session.executor().run(context);
    const at::Tensor once = session.parameters().gradients()[0].clone();
    session.executor().run(context);
    EXPECT_GT(once.abs().max().item<double>(), 0);
    EXPECT_TRUE(close(session.parameters().gradients()[0], 2 * once));
  });
}

TEST(Executor, OnlyTrainableParametersHaveGradients) {
  Graph graph = two_layers();
  graph.add_parameter(
      {.name = "frozen", .shape = {2}, .role = ParameterRole::kFrozen, .initial = {}});
  on_one_rank(Lowering(graph, {}), at::kFloat, [&](RankSession& session, StepContext& context) {
    session.executor().run(context);
    const ParameterStore& store = session.parameters();
    EXPECT_TRUE(store.values().back().defined());
    for (size_t id = 0; id < graph.parameters().size(); ++id)
      EXPECT_EQ(store.gradients()[id].defined(),
                graph.parameters()[id].role == ParameterRole::kTrainable)
          << graph.parameters()[id].name;
  });
}

TEST(Executor, CallsTheOptimiserOnceWhenAllGradientsAreThere) {
  const Graph graph = two_layers();
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  const ReferenceResult expected = run_reference(graph, noise_inputs(graph), parameters, 1, 0);
  const Lowering lowered(graph, {}, {.step = StepKind::kTrain});
  on_one_rank(lowered, at::kDouble, [&](RankSession& session, StepContext& context) {
    int calls = 0;
    context.update = [&] {
      ++calls;
      for (size_t id = 0; id < expected.gradients.size(); ++id) {
        if (!expected.gradients[id].defined()) continue;
        EXPECT_TRUE(close(session.parameters().gradients()[id], expected.gradients[id]))
            << graph.parameters()[id].name;
      }
    };
    session.executor().run(context);
    EXPECT_EQ(calls, 1);
  });
}

TEST(Executor, CallsNoOptimiserForGradientsAlone) {
  for (const StepKind step : {StepKind::kForward, StepKind::kGradient})
    on_one_rank(Lowering(two_layers(), {}, {.step = step}), at::kDouble,
                [](RankSession& session, StepContext& context) {
                  context.update = [] { ADD_FAILURE() << "called"; };
                  session.executor().run(context);
                });
}

TEST(Executor, LoadsEachInputOnce) {
  const Lowering lowered(two_layers(), {});
  on_one_rank(lowered, at::kFloat, [&](RankSession& session, StepContext& context) {
    std::vector<std::string> loads;
    const auto load = context.load;
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      EXPECT_EQ(box, Box::whole(lowered.graph().type(input).shape()));
      EXPECT_EQ(target.sizes(), box.shape());
      EXPECT_EQ(target.scalar_type(), at::kFloat);
      loads.push_back(lowered.graph().value(input).name);
      load(input, box, target);
    };
    session.executor().run(context);
    std::sort(loads.begin(), loads.end());
    EXPECT_EQ(loads, (std::vector<std::string>{"image", "target"}));
  });
}

/// Copies its input, to where it is told or to a tensor of its own, and needs 1000 numbers besides.
class CopyWithWorkspace final : public Op {
 public:
  std::string kind() const override { return "copy"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override { return inputs[0]; }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  void forward(KernelArgs& args) const override {
    const at::Tensor workspace = at::empty({1000}, at::kDouble);
    const at::Tensor x = args.inputs[0].view(args.out_box);
    args.output.view(args.out_box).copy_(x);
  }
  void input_gradient(KernelArgs&) const override {}
  at::Tensor reference(const ReferenceArgs& args) const override { return args.inputs[0]; }
};

TEST(Executor, CountsTheWorkspaceOfAKernelApart) {
  if (std::getenv("TESSERA_SYSTEM_MALLOC")) GTEST_SKIP() << "nothing is booked";
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 1, 8, 8}));
  graph.mark_output(graph.add_node("copy", std::make_shared<CopyWithWorkspace>(), {x}));
  const Lowering lowered(graph, {}, {.step = StepKind::kForward, .keep_outputs = true});
  on_one_rank(lowered, at::kDouble, [&](RankSession& session, StepContext& context) {
    context.load = [](ValueId, const Box&, at::Tensor target) {
      at::empty({100'000});  // what a loader needs is no kernel's workspace
      target.zero_();
    };
    session.executor().run(context);
    EXPECT_EQ(session.executor().memory().peak_workspace_bytes, 1000 * 8);
    EXPECT_EQ(session.executor().memory().peak_value_bytes, 2 * 64 * 8);
  });
}

TEST(Executor, AFailedKernelNamesItsNode) {
  const Lowering lowered(two_layers(), {});
  const auto run = [&] {
    on_one_rank(lowered, at::kFloat, [](RankSession& session, StepContext& context) {
      session.executor().run(context);
      session.parameters().values()[0] = at::zeros({3, 5, 3, 3});  // two channels come in
      session.executor().run(context);
    });
  };
  const std::string message = message_of<InternalError>(run);
  EXPECT_EQ(message.rfind("[convolution conv1] rank 0/1: ", 0), 0u) << message;
}

TEST(Executor, RunsAgainAfterAStepThatFailed) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 4, 4}));
  const ValueId logits = convolution(graph, x, "conv", {.out_channels = 2, .kernel = {1}});
  cross_entropy(graph, logits, add_target(graph, logits, "labels"), "loss");
  const Lowering lowered(graph, {});
  on_one_rank(lowered, at::kFloat, [&](RankSession& session, StepContext& context) {
    session.executor().run(context);
    const double loss = session.executor().loss();
    StepContext bad = context;
    bad.load = [](ValueId, const Box&, at::Tensor target) { target.fill_(5); };
    expect_refusal([&] { session.executor().run(bad); }, "label 5 is not in [0, 2)");
    session.executor().run(context);
    EXPECT_EQ(session.executor().loss(), loss);
    EXPECT_EQ(session.executor().memory().peak_value_bytes,
              simulate(lowered.program(0), at::kFloat).peak_value_bytes);
  });
}

TEST(Executor, KeepsResultsUntilAnotherStepTakesTheirPlace) {
  const Lowering lowering(two_layers(), {});
  on_one_rank(lowering, at::kFloat, [&](RankSession& session, StepContext& context) {
    Executor& executor = session.executor();
    EXPECT_THROW(executor.loss(), InternalError);
    executor.run(context);
    const double loss = executor.loss();
    EXPECT_GT(loss, 0);
    Executor other(lowering.graph(), lowering.program(0), &session.parameters(),
                   &session.transport(), {at::kFloat});
    other.run(context);
    EXPECT_EQ(other.loss(), loss);
    EXPECT_THROW(executor.loss(), InternalError);
    executor.run(context);
    EXPECT_EQ(executor.loss(), loss);
  });
}

TEST(Executor, RunsOnlyTheProgramOfItsRank) {
  Plan two_ranks;
  two_ranks.data = 2;
  const Lowering lowered(two_layers(), two_ranks);
  const auto run = [&] { on_one_rank(lowered, at::kFloat, [](RankSession&, StepContext&) {}); };
  const std::string message = message_of<InternalError>(run);
  EXPECT_NE(message.find("the program of rank 0/2 on rank 0/1"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera::executor_test
