#include "tests/ranks/engine/random_chains.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/lower/micro_batch_norm.h"
#include "tessera/lower/multigrid.h"
#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/loss_target.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/concat.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {
namespace {

class RandomChain {
 public:
  RandomChain(Draw* draw, Graph* graph) : draw_(*draw), graph_(*graph) {}

  ValueId block(ValueId state, const std::string& name) {
    name_ = name;
    channels_ = graph_.type(state).channels();
    ValueId y = state;
    const int64_t length = draw_.integer(1, 3);
    for (int64_t i = 0; i < length; ++i) y = activation(norm(product(y)));
    if (draw_.chance(0.15)) y = dropout(graph_, y, next("drop"), {.probability = 0.3});
    if (draw_.chance(0.15)) y = gated(y, state);
    if (draw_.chance(0.1)) y = pooled(y);
    if (draw_.chance(0.1)) y = excited(y);
    if (y == state) y = product(y);
    switch (draw_.integer(0, 2)) {
      case 0:
        return add(graph_, state, y, name + ".add");
      case 1:
        return add(graph_, y, state, name + ".add");
      default:
        return chain_step(graph_, state, y, name + ".add", draw_.real(0.1, 1));
    }
  }

  ValueId product(ValueId x) {
    const int64_t kernel = draw_.one_of<int64_t>({1, 3, 3, 5}), dilation = draw_.integer(1, 2);
    const int64_t padding = dilation * (kernel / 2);
    const bool bias = draw_.chance(0.5);
    if (draw_.chance(0.1))
      return transposed_convolution(graph_, x, next("up"),
                                    {.out_channels = channels_,
                                     .kernel = {kernel},
                                     .dilation = {dilation},
                                     .padding = {padding},
                                     .bias = bias});
    return convolution(graph_, x, next("conv"),
                       {.out_channels = channels_,
                        .kernel = {kernel},
                        .dilation = {dilation},
                        .padding = {padding},
                        .groups = draw_.chance(0.1) ? channels_ : 1,
                        .bias = bias});
  }

 private:
  std::string next(const char* what) { return fmt::format("{}.{}{}", name_, what, count_++); }

  ValueId norm(ValueId x) {
    switch (draw_.integer(0, 5)) {
      case 0:
      case 1:
        return batch_norm(graph_, x, next("norm"));
      case 2:
        return instance_norm(graph_, x, next("norm"), {.affine = true});
      case 3:
        return group_norm(graph_, x, next("norm"), {.groups = 1});
      default:
        return x;
    }
  }
  ValueId activation(ValueId x) {
    switch (draw_.integer(0, 5)) {
      case 0:
      case 1:
        return relu(graph_, x, next("relu"));
      case 2:
        return pointwise(graph_, x, next("tanh"), {PointwiseFunction::kTanh});
      case 3:
        return pointwise(graph_, x, next("gelu"), {PointwiseFunction::kGelu});
      case 4:
        return pointwise(graph_, x, next("scale"), {PointwiseFunction::kAffine, 0.7, 0.1});
      default:
        return x;
    }
  }
  ValueId pooled(ValueId y) {
    const int64_t kernel = draw_.one_of<int64_t>({3, 5});
    const PoolOptions options{.kernel = {kernel}, .stride = {1}, .padding = {kernel / 2}};
    return draw_.chance(0.7) ? max_pool(graph_, y, next("pool"), options)
                             : average_pool(graph_, y, next("pool"), options);
  }
  /// Squeeze and excitation.
  ValueId excited(ValueId y) {
    ValueId gate = spatial_reduction(graph_, y, next("squeeze"), {});
    gate = convolution(graph_, gate, next("fc"), {.out_channels = channels_, .kernel = {1}});
    gate = pointwise(graph_, gate, next("gate"), {PointwiseFunction::kSigmoid});
    return arithmetic(graph_, y, gate, next("excite"), Arithmetic::kMultiply);
  }
  /// Two branches that meet.
  ValueId gated(ValueId y, ValueId state) {
    const ValueId gate =
        pointwise(graph_, product(state), next("gate"), {PointwiseFunction::kSigmoid});
    if (draw_.chance(0.5)) return arithmetic(graph_, y, gate, next("mul"), Arithmetic::kMultiply);
    return product(concat(graph_, {y, gate}, next("cat")));
  }

  Draw& draw_;
  Graph& graph_;
  std::string name_;
  int64_t channels_ = 0;
  int count_ = 0;
};

Multigrid random_multigrid(Draw& draw) {
  return {.levels = draw.integer(2, 3),
          .coarsening = draw.integer(2, 3),
          .forward = draw.integer(1, 3),
          .backward = draw.integer(1, 2),
          .relaxations = draw.integer(0, 2),
          .skip = draw.chance(0.3)};
}

Graph random_chain(Draw& draw, int num_spatial, int64_t batch, int64_t blocks) {
  Graph graph;
  Shape shape{batch, 2};
  for (int64_t size : draw.per_axis(num_spatial, num_spatial == 3 ? 6 : 8, 13))
    shape.push_back(size);
  ValueId x = graph.add_input("image", ValueType::image(shape));
  const int64_t channels = draw.integer(2, 3);
  x = convolution(graph, x, "open", {.out_channels = channels, .kernel = {3}, .padding = {1}});
  RandomChain chain(&draw, &graph);
  for (int64_t i = 0; i < blocks; ++i) x = chain.block(x, fmt::format("block{}", i));
  x = convolution(graph, x, "close", {.out_channels = 3, .kernel = {1}});
  graph.mark_output(x);
  cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
  return graph;
}

}  // namespace

RandomCase random_chain_case(uint64_t seed) {
  Draw draw(seed);
  RandomCase random;
  Plan& plan = random.plan;
  const int64_t slices = draw.one_of<int64_t>({1, 2, 2, 3, 4, 8});
  const int num_spatial = static_cast<int>(draw.integer(1, 3));
  plan.multigrid = random_multigrid(draw);
  plan.multigrid->measure_gradients = seed % 3 != 0;
  std::vector<int64_t> grid(num_spatial, 1);
  if (slices <= 3 && draw.chance(0.4)) grid[draw.integer(0, num_spatial - 1)] = 2;
  if (slices == 2 && draw.chance(0.2)) std::fill(grid.begin(), grid.end(), 2);
  if (slices == 1)
    plan.space = grid;
  else
    plan.stages.assign(slices, grid);
  if (slices <= 3 && plan.num_ranks() <= 6 && draw.chance(0.2)) plan.data = 2;
  if (draw.chance(0.15)) plan.micro_batches = 2;
  if (draw.chance(0.1)) plan.pieces = std::vector<int64_t>(num_spatial, 2);
  const int64_t intervals = slices + draw.integer(slices == 1 ? 1 : 0, 3);
  const int64_t blocks = plan.multigrid->coarsening * intervals - draw.integer(0, 1);
  random.graph = with_micro_batch_norm(
      random_chain(draw, num_spatial, 2 * plan.data * plan.micro_batches, blocks),
      plan.micro_batches);
  if (slices > 1)
    plan.stage_of = assign_layers(random.graph, *plan.multigrid, static_cast<int>(slices));
  random.description = fmt::format("{} blocks on {}", blocks, to_string(plan));
  return random;
}

}  // namespace tessera
