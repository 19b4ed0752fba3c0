#include "tests/ranks/engine/random_pointwise.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/ops/pointwise/channel_reduction.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/prelu.h"
#include "tessera/ops/pointwise/softmax.h"

namespace tessera {
namespace {

using F = PointwiseFunction;

class PointwiseMaker {
 public:
  PointwiseMaker(Graph& graph, const std::string& name, Draw& draw)
      : graph_(graph), name_(name), draw_(draw) {}

  ValueId make(ValueId x) {
    switch (draw_.integer(0, 9)) {
      case 0:
        return random_prelu(x);
      case 1:
        return random_softmax(x);
      case 2:
        return random_reduction(x);
      default:
        return random_function(x);
    }
  }

 private:
  ValueId add(ValueId x, const PointwiseOptions& options, const std::string& suffix = "") {
    return pointwise(graph_, x, name_ + suffix, options);
  }

  /// In about [-2, 2].
  ValueId bounded(ValueId x) {
    if (draw_.chance(0.5)) return add(x, {F::kTanh}, "_bound");
    return add(x, {F::kClamp, draw_.real(-2, -1), draw_.real(1, 2)}, "_bound");
  }
  /// In about [0.5, 2].
  ValueId bounded_positive(ValueId x) {
    return add(add(x, {F::kTanh}, "_bound"), {F::kAffine, 0.8, 1.3}, "_shift");
  }
  /// At least 0.5.
  ValueId positive(ValueId x) {
    if (draw_.chance(0.5)) return bounded_positive(x);
    return add(add(x, {F::kSoftplus, 1, 20}, "_positive"), {F::kAffine, 1, 0.5}, "_shift");
  }

  ValueId random_function(ValueId x) {
    const F function = draw_.one_of(pointwise_functions()).function;
    return add(with_safe_input(function, x), random_options(function));
  }

  ValueId with_safe_input(F function, ValueId x) {
    switch (function) {
      case F::kExp:
      case F::kSquare:
        return bounded(x);
      case F::kPower:
        return bounded_positive(x);
      case F::kLog:
      case F::kLog1p:
      case F::kSqrt:
      case F::kNormRoot:
      case F::kRsqrt:
      case F::kReciprocal:
        return positive(x);
      default:
        return x;
    }
  }

  PointwiseOptions random_options(F function) {
    switch (function) {
      case F::kLeakyRelu:
        return {function, draw_.real(-0.3, 0.5)};
      case F::kElu:
      case F::kCelu:
        return {function, draw_.real(0.3, 1.5)};
      case F::kHardtanh:
      case F::kClamp:
        return random_interval(function);
      case F::kSoftplus:
        return {function, draw_.real(0.5, 2), draw_.real(2, 20)};
      case F::kPower:
        return {function,
                draw_.chance(0.5) ? draw_.real(-2, 3) : static_cast<double>(draw_.integer(-2, 3))};
      case F::kAffine:
        return {function, draw_.real(0.5, 1.5) * (draw_.chance(0.5) ? 1 : -1), draw_.real(-1, 1)};
      default:
        return {function};
    }
  }

  PointwiseOptions random_interval(F function) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (draw_.chance(0.3)) return {function, 0, 6};
    return {function, draw_.chance(0.2) ? -kInfinity : draw_.real(-2, -0.5),
            draw_.chance(0.2) ? kInfinity : draw_.real(0.5, 2)};
  }

  ValueId random_prelu(ValueId x) {
    return prelu(graph_, x, name_,
                 {.num_parameters = draw_.chance(0.5) ? graph_.type(x).channels() : 1,
                  .initial = draw_.real(-0.3, 0.5)});
  }

  /// The softmax of one channel is 1, and its gradient 0: nothing but rounding to compare.
  ValueId random_softmax(ValueId x) {
    if (graph_.type(x).channels() < 2)
      throw_error<InvalidInput>("[{}] softmax is to have 2 channels at least", name_);
    using Form = SoftmaxOptions::Form;
    return softmax(graph_, x, name_, {draw_.chance(0.5) ? Form::kSoftmax : Form::kLogSoftmax});
  }

  ValueId random_reduction(ValueId x) {
    using How = ChannelReductionOptions::How;
    const How how = draw_.one_of<How>({How::kSum, How::kMean, How::kMax});
    if (how != How::kMax && follows_softmax(x))
      throw_error<InvalidInput>("[{}] the sum of a softmax is constant", name_);
    return channel_reduction(graph_, x, name_, {how});
  }

  /// Whether the channels of x may have a constant sum: they come from a softmax, by nothing that
  /// weighs channels. A gradient through that sum is 0, and again there is only rounding.
  bool follows_softmax(ValueId x) const {
    const NodeId producer = graph_.value(x).producer;
    if (producer < 0) return false;
    const Node& node = graph_.node(producer);
    if (node.op->kind() == "softmax") return true;
    if (!node.parameters.empty() && node.op->kind() != "prelu") return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return follows_softmax(input); });
  }

  Graph& graph_;
  const std::string& name_;
  Draw& draw_;
};

}  // namespace

ValueId random_pointwise(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                         Draw& draw) {
  const ValueId x = draw.chance(0.7) ? images.back() : draw.one_of(images);
  return PointwiseMaker(graph, name, draw).make(x);
}

}  // namespace tessera
