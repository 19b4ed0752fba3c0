#include "tests/ranks/engine/random_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/max_unpool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tests/ranks/engine/draw.h"
#include "tests/ranks/engine/random_arithmetic.h"
#include "tests/ranks/engine/random_geometry.h"
#include "tests/ranks/engine/random_losses.h"
#include "tests/ranks/engine/random_norms.h"
#include "tests/ranks/engine/random_pointwise.h"

namespace tessera {
namespace {

constexpr int64_t kMaxElements = 6000;  // of a value: hundreds of cases run in seconds

class NetworkMaker {
 public:
  explicit NetworkMaker(uint64_t seed) : draw_(seed) {}

  Graph make() {
    spatial_ = static_cast<int>(integer(1, 3));
    Shape shape{integer(1, 4), integer(1, 3)};
    const int64_t largest = spatial_ == 1 ? 60 : spatial_ == 2 ? 22 : 9;
    for (int i = 0; i < spatial_; ++i) shape.push_back(integer(3, largest));
    images_.push_back(graph_.add_input("image", ValueType::image(shape)));
    const int64_t num_ops = integer(2, 9);
    for (int64_t made = 0, tries = 0; made < num_ops && tries < 200; ++tries) made += try_op();
    add_head();
    if (chance(0.2)) add_pixel_loss(pick(), "auxiliary");
    if (chance(0.3)) random_losses(graph_, pick(), "second", draw_);
    return std::move(graph_);
  }

 private:
  int64_t integer(int64_t low, int64_t high) { return draw_.integer(low, high); }
  bool chance(double probability) { return draw_.chance(probability); }
  std::vector<int64_t> per_axis(int64_t low, int64_t high) {
    return draw_.per_axis(spatial_, low, high);
  }
  /// Mostly the newest value, so that networks get deep; at times an old one, so that they branch.
  ValueId pick() {
    return chance(0.7) ? images_.back() : images_[integer(0, std::ssize(images_) - 1)];
  }
  /// What the families of operators may take, with the value that they should take last.
  std::vector<ValueId> candidates() {
    std::vector<ValueId> values = images_;
    values.push_back(pick());
    return values;
  }
  std::string name(const char* kind) { return fmt::format("{}{}", kind, images_.size()); }

  /// One more value, unless what was drawn does not fit. A graph is not touched by a refused node.
  bool try_op() {
    const Graph before = graph_;
    try {
      const ValueId value = random_op();
      const Shape shape = graph_.type(value).shape();
      if (Box::whole(shape).volume() <= kMaxElements && Box::whole(shape).volume() > 0) {
        images_.push_back(value);
        return true;
      }
    } catch (const InvalidInput&) {
    }
    graph_ = before;
    return false;
  }

  ValueId random_op() {
    switch (integer(0, 22)) {
      case 0:
      case 1:
      case 2:
        return random_convolution(pick());
      case 3:
        return random_transposed(pick());
      case 4:
      case 5:
        return random_norm(pick());
      case 6:
        return relu(graph_, pick(), name("relu"));
      case 7:
        return random_pool(pick());
      case 8:
        return random_interpolation(pick());
      case 9:
        return pad(graph_, pick(), name("pad"), {per_axis(-2, 3), per_axis(-2, 3)});
      case 10:
        return random_dropout(pick());
      case 11:
        return random_merge(/*concatenate=*/false);
      case 12:
        return random_merge(/*concatenate=*/true);
      case 13:
        return chance(0.5) ? norm_and_sum(pick()) : norm_relu_convolution(pick());
      case 14:
      case 15:
        return random_norms(graph_, candidates(), name("norm"), draw_);
      case 16:
      case 17:
        return random_pointwise(graph_, candidates(), name("function"), draw_);
      case 18:
      case 19:
        return random_geometry(graph_, candidates(), name("move"), draw_);
      default:
        return random_arithmetic(graph_, candidates(), name("arithmetic"), draw_);
    }
  }

  ValueId random_convolution(ValueId x) {
    const int64_t channels = graph_.type(x).channels();
    ConvolutionOptions options;
    options.groups = chance(0.2) ? channels : 1;
    options.out_channels = options.groups * integer(1, 3);
    options.kernel = per_axis(1, 5);
    options.stride = per_axis(1, chance(0.4) ? 3 : 1);
    options.dilation = per_axis(1, chance(0.3) ? 3 : 1);
    options.padding = per_axis(0, 3);
    if (chance(0.5)) options.padding_high = per_axis(0, 3);
    options.bias = chance(0.6);
    if (chance(0.2)) derive_weight(name("conv"), options, channels);
    return convolution(graph_, x, name("conv"), options);
  }

  /// The convolution's weight is v / (n + 0.5), where n follows the norm of v from step to step,
  /// and is part of a buffer that each step updates.
  void derive_weight(const std::string& name, const ConvolutionOptions& options, int64_t channels) {
    using F = WeightFunction;
    Shape shape{options.out_channels, channels / options.groups};
    shape.insert(shape.end(), options.kernel.begin(), options.kernel.end());
    const Initial uniform{Initial::Kind::kUniform, 1}, one{Initial::Kind::kConstant, 1};
    Derivation derivation;
    derivation.sources = {
        graph_.add_parameter({name + ".v", shape, ParameterRole::kTrainable, uniform}),
        graph_.add_parameter({name + ".gain", {}, ParameterRole::kTrainable, one}),
        graph_.add_parameter({name + ".norm", {}, ParameterRole::kBuffer, one})};
    Parameter weight{name + ".weight", shape, ParameterRole::kDerived, {}};
    weight.persistent = false;
    derivation.result = graph_.add_parameter(weight);
    derivation.steps = {{F::kNorm, {0}, {0}, {2}},          // 3
                        {F::kAffine, {3}, {}, {0.5, 0.5}},  // 4
                        {F::kMultiply, {2, 4}, {}, {}},     // 5
                        {F::kUpdate, {5}, {2}, {}},         // 6
                        {F::kAdd, {3, 6}, {}, {}},          // 7
                        {F::kDivide, {0, 7}, {}, {}},       // 8
                        {F::kMultiply, {8, 1}, {}, {}}};
    graph_.add_derivation(derivation);
  }

  ValueId random_transposed(ValueId x) {
    TransposedConvolutionOptions options;
    options.groups = chance(0.2) ? graph_.type(x).channels() : 1;
    options.out_channels = options.groups * integer(1, 2);
    options.kernel = per_axis(1, 4);
    options.stride = per_axis(1, 3);
    options.dilation = per_axis(1, chance(0.3) ? 2 : 1);
    options.padding = per_axis(0, 1);
    options.output_padding = per_axis(0, 1);
    options.bias = chance(0.6);
    return transposed_convolution(graph_, x, name("up"), options);
  }

  ValueId random_dropout(ValueId x) {
    using Unit = DropoutOptions::Unit;
    using Form = DropoutOptions::Form;
    const auto units = {Unit::kElement, Unit::kElement, Unit::kChannel, Unit::kSample,
                        Unit::kBatch};
    return dropout(graph_, x, name("dropout"),
                   {.probability = 0.3,
                    .unit = draw_.one_of<Unit>(units),
                    .form = chance(0.2) ? Form::kAlpha : Form::kZeros,
                    .scale = chance(0.2) ? 1 : 0.0});
  }

  /// Not of a handful of numbers: where these are equal, as after a resize, a norm divides rounding
  /// by rounding.
  ValueId random_norm(ValueId x) {
    const ValueType& type = graph_.type(x);
    if (Box::whole(type.shape()).volume() / type.channels() < 8)
      throw_error<InvalidInput>("[{}] has too few pixels for a norm", graph_.value(x).name);
    BatchNormOptions options;
    if (chance(0.2)) options.statistics = BatchNormOptions::Statistics::kRunning;
    return batch_norm(graph_, x, name("norm"), options);
  }

  ValueId norm_relu_convolution(ValueId x) {
    return random_convolution(relu(graph_, random_norm(x), name("relu")));
  }

  /// The end of a residual block, with what a convolution changed on either side of the sum, and
  /// sometimes another norm on the other.
  ValueId norm_and_sum(ValueId x) {
    const ConvolutionOptions same{
        .out_channels = graph_.type(x).channels(), .kernel = {3}, .padding = {1}};
    ValueId y = convolution(graph_, x, name("branch"), same);
    y = random_norms(graph_, {y}, name("branch_norm"), draw_);
    if (chance(0.3)) x = batch_norm(graph_, x, name("other_norm"), {.epsilon = 0.1});
    const ValueId sum =
        chance(0.5) ? add(graph_, x, y, name("sum")) : add(graph_, y, x, name("sum"));
    return chance(0.6) ? relu(graph_, sum, name("sum_relu")) : sum;
  }

  ValueId random_pool(ValueId x) {
    PoolOptions options;
    options.kernel = per_axis(1, 3);
    if (chance(0.5)) options.stride = per_axis(1, 3);
    if (chance(0.4))
      options.padding = {0};
    else
      options.padding = per_axis(0, 1);
    options.ceil_mode = chance(0.4);
    if (chance(0.5)) {
      if (chance(0.3)) options.dilation = per_axis(1, 2);
      const ValueId pooled = max_pool(graph_, x, name("max"), options);
      return chance(0.7) ? pooled : random_unpool(pooled, x, options);
    }
    options.count_include_pad = chance(0.5);
    if (chance(0.2)) options.divisor_override = integer(1, 5);
    return average_pool(graph_, x, name("average"), options);
  }

  /// Of what is no longer the maximum itself, so that overlapping windows disagree.
  ValueId random_unpool(ValueId pooled, ValueId x, const PoolOptions& options) {
    const ValueId scaled = batch_norm(graph_, pooled, name("between"), {});
    const ValueId back = max_unpool(graph_, scaled, x, name("unpool"), options);
    return add(graph_, back, x, name("unpool_sum"));
  }

  ValueId random_interpolation(ValueId x) {
    InterpolateOptions options;
    options.mode = chance(0.5) ? InterpolationMode::kNearest : InterpolationMode::kLinear;
    if (options.mode == InterpolationMode::kLinear && chance(0.5))
      options.corners = Corners::kAligned;
    if (chance(0.5)) {
      for (int i = 0; i < spatial_; ++i)
        options.size.push_back(integer(1, 2 * graph_.type(x).axes[2 + i].size));
    } else {
      for (int i = 0; i < spatial_; ++i) options.scale.push_back(draw_.real(0.4, 2.5));
    }
    return interpolate(graph_, x, name("resize"), options);
  }

  /// Adds or concatenates two values of one size; the sizes may come from different strides.
  ValueId random_merge(bool concatenate) {
    const ValueId a = pick();
    std::vector<ValueId> partners;
    for (ValueId b : images_) {
      Shape left = graph_.type(a).shape(), right = graph_.type(b).shape();
      if (concatenate) left[1] = right[1];
      // Two equal channels have no variance: a norm over them leaves nothing but rounding.
      if (left == right && !(concatenate && a == b)) partners.push_back(b);
    }
    if (partners.empty()) throw_error<InvalidInput>("[{}] has no partner", graph_.value(a).name);
    const ValueId b = partners[integer(0, std::ssize(partners) - 1)];
    return concatenate ? concat(graph_, {b, a}, name("concat")) : add(graph_, a, b, name("add"));
  }

  CrossEntropyOptions loss_options(int64_t classes, int64_t labels) {
    CrossEntropyOptions options;
    if (chance(0.3))
      for (int64_t i = 0; i < classes; ++i) options.class_weights.push_back(0.5 + chance(0.5));
    if (labels >= 30 && chance(0.3)) options.ignore_index = 0;
    return options;
  }

  void add_pixel_loss(ValueId x, const std::string& name) {
    const int64_t classes = integer(2, 4);
    const ValueId logits = convolution(graph_, x, name, {classes, {1}});
    graph_.mark_output(logits);
    const int64_t labels = Box::whole(graph_.type(logits).shape()).volume() / classes;
    cross_entropy(graph_, logits, add_target(graph_, logits, name + "_target"), name + "_loss",
                  loss_options(classes, labels));
  }

  void add_head() {
    if (chance(0.3)) return random_losses(graph_, images_.back(), "head", draw_);
    if (chance(0.4)) return add_pixel_loss(images_.back(), "head");
    // A mean over normalised pixels is zero, and so is its gradient: nothing but rounding to
    // compare. The ReLU makes the mean depend on them.
    ValueId features = chance(0.5)
                           ? global_average_pool(graph_, relu(graph_, images_.back(), "last_relu"))
                           : flatten(graph_, images_.back());
    if (chance(0.3)) features = dropout(graph_, features, "head_dropout", {0.4});
    if (chance(0.3)) {
      features = linear(graph_, features, "hidden", {5});
      features = relu(graph_, features, "head_relu");
    }
    const int64_t classes = integer(2, 4);
    const ValueId logits = linear(graph_, features, "head", {classes, chance(0.7)});
    graph_.mark_output(logits);
    cross_entropy(graph_, logits, add_target(graph_, logits, "target"), "loss",
                  loss_options(classes, 1));
  }

  Draw draw_;
  Graph graph_;
  int spatial_ = 2;
  std::vector<ValueId> images_;
};

Plan random_plan(const ValueType& input, std::mt19937_64& random) {
  const auto integer = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, std::max(low, high))(random);
  };
  Plan plan;
  plan.data = integer(0, 2) == 0 ? integer(1, std::min<int64_t>(input.batch(), 3)) : 1;
  const bool pieces = integer(0, 2) == 0;
  int64_t ranks = plan.data, pieces_per_rank = 1;
  for (int i = 0; i < input.num_spatial(); ++i) {
    const int64_t size = input.axes[2 + i].size;
    plan.space.push_back(integer(1, std::min<int64_t>({size, 5, 10 / ranks})));
    ranks *= plan.space.back();
    const int64_t room = std::min<int64_t>(size / plan.space.back(), 6 / pieces_per_rank);
    plan.pieces.push_back(pieces ? integer(1, std::min<int64_t>(room, 3)) : 1);
    pieces_per_rank *= plan.pieces.back();
  }
  return plan;
}

}  // namespace

RandomCase random_case(uint64_t seed) {
  RandomCase result;
  result.graph = NetworkMaker(seed).make();
  std::mt19937_64 random(seed ^ 0x5bd1e995);
  result.plan = random_plan(result.graph.type(result.graph.inputs()[0]), random);
  for (const Node& node : result.graph.nodes()) {
    result.description += fmt::format("{} {}(", node.name, node.op->kind());
    for (ValueId input : node.inputs) result.description += result.graph.value(input).name + " ";
    result.description += fmt::format(") {}\n", to_string(node.types.output));
  }
  result.description += to_string(result.plan);
  return result;
}

}  // namespace tessera
