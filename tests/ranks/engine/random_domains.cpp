#include "tests/ranks/engine/random_domains.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/graph/domains.h"
#include "tessera/lower/early.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/difference.h"
#include "tessera/ops/loss/domain_cross_entropy.h"
#include "tessera/ops/loss/kernel_mean.h"
#include "tessera/ops/loss/loss_target.h"
#include "tessera/ops/loss/scale_invariant_error.h"
#include "tessera/ops/norm/batch_centring.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/row_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/gradient_reversal.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/planner/domains.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {
namespace {

class DomainsMaker {
 public:
  explicit DomainsMaker(Draw& draw) : draw_(draw) {
    spatial_ = static_cast<int>(draw.integer(1, 3));
    num_domains_ = draw.integer(2, 4);
    width_ = draw.integer(2, 4);
    layers_ = draw.integer(1, 3);
    kernel_ = draw.per_axis(spatial_, 1, 3);
    norm_ = draw.chance(0.4);
    pool_ = draw.chance(0.5);
    private_codes_ = draw.chance(0.7);
    mmd_ = draw.chance(0.3);
    classify_ = draw.chance(0.7) || !(private_codes_ || mmd_);
  }

  Graph make() {
    const Shape sizes = space();
    const bool sizes_differ = draw_.chance(0.3);
    ValueId source = -1;
    for (int64_t domain = 0; domain < num_domains_; ++domain) {
      Shape shape{draw_.integer(2, 5), 2};
      const Shape own = domain > 0 && sizes_differ ? space() : sizes;
      shape.insert(shape.end(), own.begin(), own.end());
      const ValueId features = add_domain(domain, shape);
      if (domain == 0) source = features;
      if (mmd_ && domain > 0)
        mmd_loss(graph_, source, features, "mmd" + std::to_string(domain),
                 {.bandwidths = {0.1, 1, 10}, .weight = weight()});
    }
    return std::move(graph_);
  }

 private:
  Shape space() {
    const int64_t largest = spatial_ == 1 ? 40 : spatial_ == 2 ? 14 : 7;
    return draw_.per_axis(spatial_, 5, largest);
  }
  /// Steps 0 and 1 are verified: at once, from the second on, or growing.
  StepFunction weight() {
    return draw_.one_of<StepFunction>({0.5, {2, 1}, {1, 0, 3}}) * draw_.real(0.5, 1.5);
  }

  /// Layers without a ReLU, so that no code is zero.
  ValueId encode(ValueId x, const std::string& prefix) {
    for (int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = prefix + std::to_string(layer);
      std::vector<int64_t> low, high;
      for (int64_t size : kernel_) {
        low.push_back((size - 1) / 2);
        high.push_back(size / 2);
      }
      x = convolution(
          graph_, x, name,
          {.out_channels = width_, .kernel = kernel_, .padding = low, .padding_high = high});
      if (norm_) x = batch_norm(graph_, x, name + ".norm");
      x = pointwise(graph_, x, name + ".silu", {PointwiseFunction::kSilu});
      if (pool_ && layer == 0) x = average_pool(graph_, x, name + ".pool", {.kernel = {2}});
    }
    return x;
  }

  ValueId add_domain(int64_t domain, const Shape& shape) {
    const std::string number = std::to_string(domain);
    const ValueId image = graph_.add_input("image" + number, ValueType::image(shape));
    const ValueId code = encode(image, "shared");
    const ValueId features = global_average_pool(graph_, code);
    if (domain == 0) solve(code, features);
    if (classify_) {
      ValueId x = gradient_reversal(graph_, features, "reversal" + number, weight());
      x = linear(graph_, x, "domain", {.out_features = num_domains_});
      domain_cross_entropy(graph_, x, domain, "domain_loss" + number, {.weight = weight()});
    }
    if (private_codes_) separate(image, code, number);
    return features;
  }

  void solve(ValueId code, ValueId features) {
    const ValueId logits =
        draw_.chance(0.5) ? linear(graph_, features, "head", {.out_features = 3})
                          : convolution(graph_, code, "head", {.out_channels = 3, .kernel = {1}});
    graph_.mark_output(logits);
    cross_entropy(graph_, logits, add_target(graph_, logits, "target"), "loss");
  }

  void separate(ValueId image, ValueId code, const std::string& number) {
    const ValueId own = encode(image, "private" + number + ".");
    difference_loss(graph_, rows(code), rows(own), "difference" + number, {.weight = weight()});
    ValueId x = add(graph_, code, own, "code" + number);
    const Shape shape = graph_.type(image).shape();
    x = convolution(graph_, x, "decoder", {.out_channels = shape[1], .kernel = {1}});
    if (pool_)
      x = interpolate(graph_, x, "enlarged" + number, {.size = {shape.begin() + 2, shape.end()}});
    scale_invariant_error(graph_, x, image, "reconstruction" + number, {.weight = weight()});
  }

  ValueId rows(ValueId code) {
    return row_norm(graph_, batch_centring(graph_, code, "centred"), "rows");
  }

  Draw& draw_;
  Graph graph_;
  int spatial_ = 2;
  int64_t num_domains_ = 2, width_ = 2, layers_ = 1;
  std::vector<int64_t> kernel_;
  bool norm_ = false, pool_ = false, private_codes_ = true, mmd_ = false, classify_ = true;
};

/// Grids that every image has room for; few ranks in all, since each is a thread.
std::vector<int64_t> small_grid(const Graph& graph, Draw& draw, int64_t most) {
  std::vector<int64_t> grid;
  const std::vector<ValueId> images = image_inputs(graph);
  for (int i = 0; i < graph.type(images[0]).num_spatial(); ++i) {
    grid.push_back(draw.integer(1, most));
    most /= grid.back();
  }
  return grid;
}

/// No image has less than five pixels along an axis.
std::vector<int64_t> small_pieces(const Graph& graph, const Plan& plan, Draw& draw) {
  std::vector<int64_t> pieces;
  for (int i = 0; i < graph.type(graph.inputs()[0]).num_spatial(); ++i) {
    int64_t parts = 1;
    for (int stage = 0; stage < plan.num_stages(); ++stage)
      parts = std::max(parts, plan.space_parts(stage, i));
    pieces.push_back(draw.integer(1, parts <= 2 ? 2 : 1));
  }
  return pieces;
}

int64_t smallest_batch(const Graph& graph) {
  int64_t batch = graph.type(graph.inputs()[0]).batch();
  for (ValueId input : graph.inputs()) batch = std::min(batch, graph.type(input).batch());
  return batch;
}

void place_by_domains(const Graph& graph, Draw& draw, Plan* plan) {
  const bool branches = draw.chance(0.5);
  DomainGroups groups;
  try {
    groups = group_by_domains(graph, branches ? 2 : 1);
  } catch (const std::exception&) {  // a domain without private codes has one branch
    groups = group_by_domains(graph, 1);
  }
  const int stages = groups.count() <= 4 && draw.chance(0.3) ? 2 : 1;
  plan->stages.resize(groups.count() * stages);
  if (draw.chance(0.5)) {
    const std::vector<int64_t> grid = small_grid(graph, draw, plan->num_stages() <= 4 ? 4 : 2);
    if (draw.chance(0.6))
      plan->stages.assign(plan->num_stages(), grid);
    else
      plan->stages[draw.integer(0, plan->num_stages() - 1)] = grid;
  }
  plan->stage_of = stages_by_domains(graph, *plan, groups);
}

void place_anyhow(const Graph& graph, Draw& draw, Plan* plan) {
  if (draw.chance(0.4)) {
    plan->space = small_grid(graph, draw, 5);
    return;
  }
  plan->stages.resize(draw.integer(2, 4));
  for (const Node& node : graph.nodes())
    plan->stage_of[node.name] = static_cast<int>(draw.integer(0, plan->num_stages() - 1));
}

bool has_mmd(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->kind() == "kernel_mean"; });
}

}  // namespace

RandomCase random_domains_case(uint64_t seed) {
  Draw draw(seed * 104729 + 7);
  RandomCase result;
  result.graph = DomainsMaker(draw).make();
  Plan& plan = result.plan;
  if (draw.chance(0.6))
    place_by_domains(result.graph, draw, &plan);
  else
    place_anyhow(result.graph, draw, &plan);
  const int64_t batch = smallest_batch(result.graph);
  if (plan.num_ranks() <= 8 && draw.chance(0.25)) plan.data = 2;
  if (!has_mmd(result.graph) && plan.data == 1 && draw.chance(0.4)) {
    plan.micro_batches = draw.integer(1, batch);
    result.graph = with_micro_batch_norm(result.graph, plan.micro_batches);
    if (find_early_part(result.graph, plan.micro_batches).late_loss >= 0)
      plan.schedule = ScheduleKind::kGpipe;
  }
  if (draw.chance(0.2)) plan.pieces = small_pieces(result.graph, plan, draw);
  result.description = to_string(plan) + "\n";
  for (const Node& node : result.graph.nodes()) {
    const auto stage = plan.stage_of.find(node.name);
    result.description +=
        fmt::format("{} {} {}@{}\n", node.name, node.op->kind(), to_string(node.types.output),
                    stage == plan.stage_of.end() ? 0 : stage->second);
  }
  return result;
}

}  // namespace tessera
