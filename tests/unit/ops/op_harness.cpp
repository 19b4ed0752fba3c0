#include "tests/unit/ops/op_harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/kernels/library_kernels.h"
#include "tests/unit/ops/piece_run.h"
#include "tests/unit/ops/random_views.h"

namespace tessera {
namespace {

/// NaN equals NaN: a loss over no target is NaN in both.
void expect_near(const std::string& what, const at::Tensor& tensor, const at::Tensor& reference,
                 double tolerance) {
  ASSERT_EQ(tensor.sizes(), reference.sizes()) << what;
  if (reference.numel() == 0) return;
  const at::Tensor got = tensor.to(at::kDouble), want = reference.to(at::kDouble);
  const at::Tensor same = (got == want).logical_or(at::isnan(got).logical_and(at::isnan(want)));
  const double difference = (got - want).abs().masked_fill(same, 0).max().item<double>();
  // The floor is for gradients that are truly zero and rounded in two ways.
  const double scale = std::max(at::nan_to_num(want, 0, 0, 0).abs().max().item<double>(), 1e-3);
  EXPECT_LE(difference, tolerance * scale) << what << ", largest reference " << scale;
}

void expect_near(const std::string& what, const Tensors& tensors, const Tensors& references,
                 double tolerance) {
  ASSERT_EQ(tensors.size(), references.size()) << what;
  for (size_t i = 0; i < tensors.size(); ++i)
    expect_near(what + " " + std::to_string(i), tensors[i], references[i], tolerance);
}

Tensors converted(const Tensors& tensors, at::ScalarType real) {
  Tensors result;
  for (const at::Tensor& tensor : tensors)
    result.push_back(tensor.is_floating_point() ? tensor.to(real) : tensor);
  return result;
}

void check_case(const Case& test, Draw& draw, const HarnessOptions& options) {
  SCOPED_TRACE(fmt::format("{} to {} in {}", test.op.kind(), to_string(test.types.output),
                           at::toString(test.real)));
  const OpResult whole = run_whole(test);
  const OpResult pieces = run_in_pieces(test, draw, options);
  const double tolerance = test.real == at::kDouble ? options.tolerance : options.float32_tolerance;
  expect_near("output", pieces.output, whole.output, tolerance);
  expect_near("gradient of input", pieces.grad_inputs, whole.grad_inputs, tolerance);
  expect_near("gradient of parameter", pieces.grad_parameters, whole.grad_parameters, tolerance);
  expect_near("buffer", pieces.buffers, whole.buffers, tolerance);
}

void check_named_op(const Op& op, const std::string& name, const NodeTypes& types,
                    const Tensors& inputs, const Tensors& parameters, const Tensors& buffers,
                    uint64_t seed, const HarnessOptions& options) {
  Draw draw(~seed);  // not the numbers that the inputs were drawn from
  const at::Tensor weights = draw.uniform(types.output.shape(), -1, 1);
  const auto check_in = [&](at::ScalarType real) {
    check_case({op, name, types, converted(inputs, real), converted(parameters, real),
                converted(buffers, real), weights.to(real), seed, real},
               draw, options);
  };
  check_in(at::kDouble);
  check_in(at::kFloat);
  SCOPED_TRACE("by library kernels");
  const LibraryKernels switched_on;
  check_in(at::kDouble);
}

}  // namespace

void check_op(const Op& op, const std::vector<ValueType>& input_types,
              const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters,
              const std::vector<at::Tensor>& buffers, uint64_t seed, HarnessOptions options) {
  check_named_op(op, "op", {input_types, op.infer_type(input_types)}, inputs, parameters, buffers,
                 seed, options);
}

void check_graph_node(const Graph& graph, uint64_t seed, HarnessOptions options) {
  Draw draw(seed);
  for (const Node& node : graph.nodes()) {
    SCOPED_TRACE(fmt::format("node {}", node.name));
    Tensors inputs, parameters, buffers;
    for (const ValueType& type : node.types.inputs)
      inputs.push_back(type.element == Element::kReal
                           ? draw.uniform(type.shape(), -1, 1)
                           : draw.labels(type.shape(), node.types.inputs[0].channels()));
    for (ParameterId id : node.parameters)
      parameters.push_back(draw.uniform(graph.parameters()[id].shape, -1, 1));
    for (ParameterId id : node.buffers)
      buffers.push_back(draw.uniform(graph.parameters()[id].shape, 0.5, 1.5));
    check_named_op(*node.op, node.name, node.types, inputs, parameters, buffers, seed, options);
  }
}

}  // namespace tessera
