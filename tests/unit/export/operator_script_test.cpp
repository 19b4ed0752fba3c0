// Operators with options that no model of the zoo has: what they say in TorchScript is what the
// reference path computes, in both modes, or nothing.

#include <gtest/gtest.h>
#include <torch/script.h>

#include "tessera/export/script_file.h"
#include "tessera/graph/reference.h"
#include "tessera/lower/inference.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::operator_script_test {
namespace {

using Build = std::function<ValueId(Graph& graph, ValueId x)>;

Graph graph_of(const Shape& input, const Build& build) {
  Graph graph;
  graph.mark_output(build(graph, graph.add_input("image", ValueType::image(input))));
  return graph;
}

std::vector<at::Tensor> random_parameters(const Graph& graph) {
  std::vector<at::Tensor> parameters;
  at::manual_seed(1);
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(at::rand(parameter.shape, at::kDouble).add_(0.5));
  return parameters;
}

void expect_same(const Graph& graph, torch::jit::Module& module,
                 std::vector<at::Tensor> parameters) {
  at::manual_seed(2);
  const at::Tensor x = at::randn(graph.type(graph.inputs()[0]).shape(), at::kDouble);
  const at::Tensor got = module.forward({x}).toTensor();
  const at::Tensor wanted = run_reference(graph, {x}, parameters, 1, 0).outputs[0];
  ASSERT_EQ(got.sizes(), wanted.sizes());
  EXPECT_LE((got - wanted).abs().max().item<double>(), 1e-12);
  for (const auto& item : module.named_buffers())
    for (size_t id = 0; id < parameters.size(); ++id) {
      if (graph.parameters()[id].name != item.name) continue;
      EXPECT_LE((item.value - parameters[id]).abs().max().item<double>(), 1e-12) << item.name;
    }
}

void check(const Shape& input, const Build& build) {
  const Graph graph = graph_of(input, build);
  SCOPED_TRACE(graph.nodes().back().op->kind() + " " + graph.nodes().back().op->settings());
  const std::vector<at::Tensor> parameters = random_parameters(graph);
  const ScratchFolder folder;
  export_torchscript(folder / "net.pt", graph, parameters);
  for (const bool trains : {true, false}) {
    torch::jit::Module module = torch::jit::load(folder / "net.pt");
    module.train(trains);
    std::vector<at::Tensor> own;
    for (const at::Tensor& parameter : parameters) own.push_back(parameter.clone());
    expect_same(trains ? graph : for_inference(graph), module, own);
  }
}

TEST(OperatorScript, Convolutions) {
  check({2, 4, 9, 8}, [](Graph& graph, ValueId x) {
    return convolution(graph, x, "conv",
                       {.out_channels = 6,
                        .kernel = {3, 2},
                        .stride = {2, 1},
                        .dilation = {1, 2},
                        .padding = {0, 2},
                        .padding_high = {3, 1},
                        .groups = 2});
  });
  check({2, 4, 9}, [](Graph& graph, ValueId x) {
    return convolution(graph, x, "conv", {.out_channels = 3, .kernel = {3}, .padding = {2}});
  });
  check({1, 4, 5, 6, 4}, [](Graph& graph, ValueId x) {
    return transposed_convolution(graph, x, "up",
                                  {.out_channels = 6,
                                   .kernel = {3, 2, 3},
                                   .stride = {2, 3, 1},
                                   .dilation = {1, 2, 3},
                                   .padding = {1, 0, 2},
                                   .output_padding = {1, 2, 0},
                                   .groups = 2,
                                   .bias = false});
  });
  check({2, 4, 3, 5},
        [](Graph& graph, ValueId x) { return linear(graph, x, "mix", {.out_features = 3}); });
}

TEST(OperatorScript, Norms) {
  const Shape input{3, 4, 5, 3};
  check(input, [](Graph& graph, ValueId x) {
    return batch_norm(graph, x, "norm", {.epsilon = 1e-3, .momentum = 0.3});
  });
  check(input, [](Graph& graph, ValueId x) {
    return batch_norm(graph, x, "norm", {.affine = false, .running = false});
  });
  check(input, [](Graph& graph, ValueId x) {
    return batch_norm(graph, x, "norm",
                      {.statistics = BatchNormOptions::Statistics::kRunning,
                       .activation = BatchNormOptions::Activation::kRelu});
  });
  check(input, [](Graph& graph, ValueId x) {
    return instance_norm(graph, x, "norm", {.momentum = 0.3, .track_running = true});
  });
  check(input, [](Graph& graph, ValueId x) {
    return group_norm(graph, x, "norm", {.groups = 2, .epsilon = 0.01, .affine = false});
  });
}

TEST(OperatorScript, Pools) {
  const Build pools[] = {
      [](Graph& graph, ValueId x) {
        return max_pool(
            graph, x, "pool",
            {.kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {2}, .ceil_mode = true});
      },
      [](Graph& graph, ValueId x) {
        return average_pool(
            graph, x, "pool",
            {.kernel = {3}, .padding = {1}, .ceil_mode = true, .count_include_pad = false});
      },
      [](Graph& graph, ValueId x) {
        return adaptive_average_pool(graph, x, "pool", {.size = {3}});
      },
      [](Graph& graph, ValueId x) {
        return spatial_reduction(graph, x, "sum",
                                 {.how = SpatialReductionOptions::How::kSum, .axes = {0}});
      }};
  for (const Build& pool : pools)
    for (const Shape& input : {Shape{2, 3, 11}, Shape{2, 3, 11, 8}, Shape{1, 2, 7, 8, 9}})
      check(input, pool);
  check({1, 2, 7, 9}, [](Graph& graph, ValueId x) {
    return average_pool(graph, x, "pool", {.kernel = {2}, .divisor_override = 5});
  });
  check({1, 2, 7, 9}, [](Graph& graph, ValueId x) {
    return adaptive_average_pool(graph, x, "pool", {.size = {3, 0}});
  });
}

TEST(OperatorScript, Shapes) {
  check({1, 2, 5, 4}, [](Graph& graph, ValueId x) {
    return pad(graph, x, "pad", {.low = {1, -1}, .high = {0, 3}, .value = 0.5});
  });
  check({1, 2, 5, 4}, [](Graph& graph, ValueId x) { return concat(graph, {x, x}, "cat", 3); });
  for (const Shape& input : {Shape{1, 2, 5}, Shape{1, 2, 5, 4}, Shape{1, 2, 5, 4, 3}})
    for (const InterpolateOptions& options :
         {InterpolateOptions{.mode = InterpolationMode::kLinear, .scale = {1.5}},
          InterpolateOptions{
              .mode = InterpolationMode::kLinear, .corners = Corners::kAligned, .size = {7}},
          InterpolateOptions{.mode = InterpolationMode::kNearest, .scale = {3}},
          InterpolateOptions{.mode = InterpolationMode::kNearestExact, .size = {9}}})
      check(input,
            [&](Graph& graph, ValueId x) { return interpolate(graph, x, "resize", options); });
  check({1, 2, 5, 4}, [](Graph& graph, ValueId x) {
    return interpolate(graph, x, "resize", {.mode = InterpolationMode::kCubic, .scale = {2}});
  });
}

TEST(OperatorScript, Arithmetic) {
  for (const Arithmetic how : {Arithmetic::kAdd, Arithmetic::kSubtract, Arithmetic::kMultiply,
                               Arithmetic::kDivide, Arithmetic::kMaximum, Arithmetic::kMinimum})
    check({2, 3, 4, 5}, [&](Graph& graph, ValueId x) {
      return arithmetic(graph, x, spatial_reduction(graph, x, "mean", {}), "both", how);
    });
  check({2, 3, 4, 5}, [](Graph& graph, ValueId x) {
    return pointwise(graph, x, "act", {PointwiseFunction::kHardtanh, -0.25, 1});
  });
}

/// Names of nodes that are words of the language, or the same but for their dots.
TEST(OperatorScript, NamesAreAnything) {
  check({2, 3, 4, 5}, [](Graph& graph, ValueId x) {
    x = convolution(graph, x, "0.a", {.out_channels = 2, .kernel = {1}});
    x = convolution(graph, x, "0_a", {.out_channels = 2, .kernel = {1}});
    x = convolution(graph, x, "image", {.out_channels = 2, .kernel = {1}});
    return relu(graph, relu(graph, x, "class"), "self");
  });
}

/// A norm that is used twice, and a weight that is.
TEST(OperatorScript, ModulesMayBeShared) {
  check({2, 3, 4, 5}, [](Graph& graph, ValueId x) {
    for (int time = 0; time < 2; ++time)
      x = batch_norm(graph, convolution(graph, x, "conv", {.out_channels = 3, .kernel = {1}}),
                     "norm");
    return x;
  });
}

std::string refused(const Build& build) {
  const Graph graph = graph_of({2, 4, 6, 6}, build);
  const std::string message = message_of<Unsupported>([&] { check_exportable(graph); });
  const ScratchFolder folder;
  EXPECT_EQ(message_of<Unsupported>(
                [&] { export_torchscript(folder / "net.pt", graph, random_parameters(graph)); }),
            message);
  EXPECT_TRUE(names_in(folder.path()).empty());
  return message;
}

TEST(OperatorScript, WhatHasNoFormIsRefusedByItsName) {
  EXPECT_EQ(refused([](Graph& graph, ValueId x) {
              return pad(graph, x, "border",
                         {.low = {1, 1}, .high = {1, 1}, .mode = PadOptions::Mode::kReflect});
            }),
            "[border] pad (reflect, low 1x1, high 1x1) has no form in a file for PyTorch; save the "
            "weights to a name that ends in .safetensors");
  EXPECT_TRUE(has(refused([](Graph& graph, ValueId x) {
                    return dropout(graph, x, "path",
                                   {.probability = 0.5, .unit = DropoutOptions::Unit::kSample});
                  }),
                  "[path] dropout (p 0.5, whole samples)"));
  EXPECT_TRUE(has(refused([](Graph& graph, ValueId x) {
                    return pointwise(graph, x, "act", {PointwiseFunction::kSilu});
                  }),
                  "[act] silu has no form"));
  EXPECT_TRUE(has(refused([](Graph& graph, ValueId x) {
                    const ValueId other = graph.add_input("other", graph.type(x));
                    return arithmetic(graph, x, other, "sum", Arithmetic::kAdd);
                  }),
                  "[export] the network has 2 inputs"));
}

}  // namespace
}  // namespace tessera::operator_script_test
