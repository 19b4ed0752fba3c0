// A graph that went through plain data is the same graph; data that does not hold together is
// refused.

#include "tessera/import/recording.h"

#include <fmt/ranges.h>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/import/recorded_builders.h"
#include "tests/unit/refusal.h"

namespace tessera::recording_test {
namespace {

std::string bytes_of(const Recording& recording) {
  std::string bytes;
  PlainWriter write = writer_to(bytes);
  write_recording(recording, write);
  return bytes;
}

Recording read_back(const std::string& bytes, int64_t most_bytes = 1 << 20) {
  size_t done = 0;
  PlainReader read = reader_of(bytes, done);
  return read_recording(read, most_bytes);
}

/// All that distinguishes two graphs.
std::string description(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes())
    text +=
        fmt::format("{} {} {} [{}] [{}] [{}] {}\n", node.name, node.op->kind(), node.op->settings(),
                    fmt::join(node.inputs, " "), fmt::join(node.parameters, " "),
                    fmt::join(node.buffers, " "), to_string(node.types.output));
  for (const Derivation& derivation : graph.derivations()) {
    text += fmt::format("{} of {}\n", derivation.result, fmt::join(derivation.sources, " "));
    for (const WeightStep& step : derivation.steps)
      text += fmt::format("{} [{}] [{}] [{}]\n", static_cast<int>(step.function),
                          fmt::join(step.operands, " "), fmt::join(step.numbers, " "),
                          fmt::join(step.factors, " "));
  }
  for (const Parameter& parameter : graph.parameters())
    text +=
        fmt::format("{} {} {} {} {}\n", parameter.name, to_string(parameter.shape),
                    static_cast<int>(parameter.role), parameter.persistent,
                    parameter.initial.given.defined() ? parameter.initial.given.sum().item<double>()
                                                      : parameter.initial.value);
  return text + fmt::format("{}", fmt::join(graph.outputs(), " "));
}

/// Every builder at least once, with options that are not the default ones.
Recording recording_of_all() {
  Recording graph;
  const ValueId image = graph.add(AddedInput{"image", {2, 4, 16, 16}});
  Parameter weight{"w.weight", {6, 2, 3, 3}, ParameterRole::kFrozen, {}};
  weight.initial = {Initial::Kind::kGiven, 0, at::arange(108, at::kDouble).reshape({6, 2, 3, 3})};
  weight.persistent = false;
  graph.add(weight);
  graph.add(AddedAlias{"conv#1.weight", 0});
  ConvolutionOptions conv;
  conv.out_channels = 6;
  conv.kernel = {3, 3};
  conv.stride = {2, 1};
  conv.dilation = {1, 2};
  conv.padding = {1, 0};
  conv.padding_high = {2, 1};
  conv.groups = 2;
  conv.bias = false;
  ValueId x = convolution(graph, image, "conv#1", conv);
  Parameter norm{"w.norm", {}, ParameterRole::kBuffer, {}};
  norm.initial = {Initial::Kind::kGiven, 0, at::ones({}, at::kDouble)};
  graph.add(norm);
  graph.add(AddedDerivation{"#derived1",
                            {0, 1},
                            {{WeightFunction::kNorm, {0}, {0}, {2}},
                             {WeightFunction::kUpdate, {2}, {1}},
                             {WeightFunction::kDivide, {0, 3}}}});
  graph.add(AddedAlias{"conv#2.weight", 2});
  x = arithmetic(graph, x, convolution(graph, image, "conv#2", conv), "both", Arithmetic::kAdd);
  x = batch_norm(graph, x, "bn", {.epsilon = 1e-3, .momentum = 0.3, .affine = false});
  x = group_norm(graph, x, "gn", {.groups = 3, .epsilon = 1e-4});
  x = instance_norm(graph, x, "in", {.momentum = 0.2, .affine = true, .track_running = true});
  x = layer_norm(graph, x, "ln", {.over = LayerNormOptions::Over::kSample, .epsilon = 1e-4});
  x = dropout(graph, x, "drop",
              {0.25, DropoutOptions::Unit::kSample, DropoutOptions::Form::kZeros, 1.5});
  x = pointwise(graph, x, "act", {PointwiseFunction::kHardtanh, -1, 6});
  x = prelu(graph, x, "prelu", {6, 0.1});
  x = relu(graph, x, "relu");
  const ValueId sum = arithmetic(graph, x, x, "sum", Arithmetic::kMaximum);
  x = arithmetic_with_parameter(graph, sum, "scale", Arithmetic::kSubtract,
                                {.shape = {6, 1, 1}, .side = ParameterOperand::Side::kLeft});
  x = pad(graph, x, "pad", {{1, 2}, {0, 1}, PadOptions::Mode::kReflect, 0});
  PoolOptions pool;
  pool.kernel = {2, 2};
  pool.stride = {2, 2};
  pool.ceil_mode = true;
  const ValueId fine = x;
  x = max_pool(graph, x, "max", pool);
  const ValueId back = max_unpool(graph, x, fine, "unmax", pool);
  x = max_pool(graph, back, "max again", pool);
  pool.count_include_pad = false;
  pool.padding = {1};
  x = average_pool(graph, x, "mean", pool);
  InterpolateOptions resize;
  resize.mode = InterpolationMode::kLinear;
  resize.corners = Corners::kAligned;
  resize.size = {8, 8};
  x = interpolate(graph, x, "resize", resize);
  TransposedConvolutionOptions up;
  up.out_channels = 8;
  up.kernel = {2, 2};
  up.stride = {2, 2};
  up.groups = 2;
  x = transposed_convolution(graph, x, "up", up);
  const Shape shape = graph.type(x).shape();
  const Lettering groups{{0}, {1, 2}, {3}, {4}}, shuffled{{0}, {2, 1}, {3}, {4}};
  const Shape sizes{shape[0], 2, shape[1] / 2, shape[2], shape[3]};
  const ValueId mixed = rearrange(graph, x, "shuffle", {sizes, {groups}, shuffled});
  x = contract(graph, x, mixed, "product", {sizes, {groups, shuffled}, groups});
  x = slice(graph, x, "part", {.axis = 1, .begin = 1, .end = 8, .step = 2});
  x = concat(graph, {x, x}, "cat", 1);
  x = softmax(graph, x, "soft", {SoftmaxOptions::Form::kLogSoftmax, 2});
  x = adaptive_average_pool(graph, x, "to4", {{4, 4}});
  x = adaptive_max_pool(graph, x, "to2", {{2, 2}});
  const ValueId peak = amax(graph, x, "peak", {{2, 3}});
  const ValueId least = channel_reduction(graph, x, "least", {ChannelReductionOptions::How::kMax});
  x = spatial_reduction(graph, least, "all", {SpatialReductionOptions::How::kSum, {}, true});
  x = squeeze(graph, x, "squeeze", 3);
  x = unsqueeze(graph, x, "unsqueeze", 3);
  graph.add(MarkedOutput{x});
  x = linear(graph, flatten(graph, peak), "head", {5, true});
  graph.add(MarkedOutput{x});
  return graph;
}

TEST(Recording, AGraphOfAllBuildersComesBackAsItWas) {
  const Recording graph = recording_of_all();
  std::set<Builder> used;
  for (const auto& statement : graph.statements())
    if (const auto* call = std::get_if<BuilderCall>(&statement)) used.insert(call->builder);
  EXPECT_EQ(used.size(), static_cast<size_t>(kLastBuilder) + 1) << "a builder is not tried here";
  const std::string bytes = bytes_of(graph);
  const Recording again = read_back(bytes);
  EXPECT_EQ(description(again.graph()), description(graph.graph()));
  EXPECT_EQ(bytes_of(again), bytes);
  EXPECT_TRUE(at::equal(again.graph().parameters()[0].initial.given,
                        graph.graph().parameters()[0].initial.given));
}

TEST(Recording, WeightsHaveALimit) {
  const std::string bytes = bytes_of(recording_of_all());
  EXPECT_NO_THROW(read_back(bytes, 109 * 8));
  expect_refusal([&] { read_back(bytes, 109 * 8 - 1); }, "more memory than the file allows");
}

TEST(Recording, WhatIsNotThereCannotBeNamed) {
  Recording graph;
  graph.add(AddedInput{"image", {1, 1, 4, 4}});
  expect_refusal([&] { relu(graph, 7, "act"); }, "there is no value 7");
  expect_refusal([&] { relu(graph, -1, "act"); }, "there is no value -1");
  expect_refusal([&] { graph.add(AddedAlias{"a", 0}); }, "there is no parameter 0");
  expect_refusal([&] { graph.add(MarkedOutput{1}); }, "there is no value 1");
  expect_refusal([&] { graph.add(AddedInput{"image", {1}}); }, "1 axes");
  expect_refusal(
      [&] {
        graph.add(BuilderCall{Builder::kSlice, {0}, "s", "short"});
      },
      "options are missing");
  expect_refusal([&] { graph.add(BuilderCall{Builder::kRelu, {0, 0}, "r", ""}); }, "2 inputs");
}

TEST(Recording, ComputedWeightsAreChecked) {
  using F = WeightFunction;
  const auto refused = [](const AddedDerivation& derivation, const std::string& words) {
    Recording graph;
    for (const auto& [name, role] :
         {std::pair("v", ParameterRole::kTrainable), std::pair("b", ParameterRole::kBuffer)}) {
      Parameter parameter{name, {3, 2}, role, {}};
      parameter.initial = {Initial::Kind::kGiven, 0, at::ones({3, 2}, at::kDouble)};
      graph.add(parameter);
    }
    graph.add(AddedDerivation{"first", {0}, {{F::kNegate, {0}}}});
    expect_refusal([&] { graph.add(derivation); }, words);
  };
  refused({"d", {0, 7}, {{F::kAdd, {0, 1}}}}, "there is no parameter 7");
  refused({"d", {2}, {{F::kNegate, {0}}}}, "cannot be computed from first");
  refused({"d", {0, 0}, {{F::kAdd, {0, 1}}}}, "cannot be computed from v");
  refused({"d", {0}, {{F::kAdd, {0, 1}}}}, "reads result 1 of 1");
  refused({"d", {0}, {{F::kAdd, {0}}}}, "1 operands");
  refused({"d", {0}, {{F::kClamp, {0}, {}, {1}}}}, "1 factors");
  refused({"d", {0}, {{F::kMatmul, {0, 0}}}}, "a computed weight");
  refused({"d", {0}, {{F::kExpand, {0}, {1 << 20, 1 << 20, 3, 2}}}}, "more than 2^31 elements");
  refused({"d", {0}, {{F::kMean, {0}}}}, "lacks a number");
  refused({"d", {0}, {{F::kUpdate, {0}, {0}}}}, "v is updated");
  refused({"d", {0, 1}, {{F::kUpdate, {0}, {5}}}}, "not a buffer of its shape");
  refused({"first", {0}, {{F::kNegate, {0}}}}, "the name first is taken");
  refused({"d", {}, {}}, "no source");
}

TEST(Recording, EveryCutIsRefused) {
  const std::string bytes = bytes_of(recording_of_all());
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 16)
    EXPECT_THROW(read_back(bytes.substr(0, size)), InvalidInput) << size;
}

}  // namespace
}  // namespace tessera::recording_test
