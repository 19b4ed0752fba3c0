#include "tests/ranks/engine/random_arithmetic.h"

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/amax.h"
#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {
namespace {

class ArithmeticMaker {
 public:
  ArithmeticMaker(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                  Draw& draw)
      : graph_(graph), images_(images), name_(name), draw_(draw), x_(pick()) {}

  ValueId make() {
    switch (draw_.integer(0, 9)) {
      case 0:
        return of_two_images();
      case 1:
        return squeeze_and_excite();
      case 2:
        return attend();
      case 3:
      case 4:
        return with_parameter();
      case 5:
        return quotient();
      case 6:
        return rows_and_columns();
      case 7:
        return not_too_small(peak());
      case 8:
        return not_too_small(reduce(square(x_, "power"), "reduced", 0.3));
      default:
        return adaptive_pool();
    }
  }

 private:
  /// The maximum along some axes, of a smooth value: a ReLU's zeros would all be equal.
  ValueId peak() {
    AmaxOptions options;
    for (int axis = 1; axis < type().num_axes(); ++axis)
      if (draw_.chance(0.5)) options.axes.push_back(axis);
    if (options.axes.empty()) options.axes.push_back(1);
    return amax(graph_, square(x_, "squares"), name("peak"), options);
  }

  ValueId pick() { return draw_.chance(0.7) ? images_.back() : draw_.one_of(images_); }
  const ValueType& type() const { return graph_.type(x_); }
  std::string name(const char* suffix) const { return name_ + "." + suffix; }

  ValueId combine(ValueId a, ValueId b, Arithmetic how) {
    return draw_.chance(0.5) ? arithmetic(graph_, a, b, name_, how)
                             : arithmetic(graph_, b, a, name_, how);
  }
  Arithmetic smooth() {
    return draw_.one_of<Arithmetic>(
        {Arithmetic::kAdd, Arithmetic::kSubtract, Arithmetic::kMultiply, Arithmetic::kMultiply});
  }

  /// A norm over a handful of numbers has gradients that are the rounding of others.
  bool is_small(ValueId value) const {
    const ValueType& type = graph_.type(value);
    return Box::whole(type.shape()).volume() / type.channels() < 8;
  }
  ValueId not_too_small(ValueId value) {
    return is_small(value) ? combine(x_, value, Arithmetic::kMultiply) : value;
  }

  /// Maximum and minimum of equal shapes only: the larger of a map and one number is often
  /// constant, and a norm then divides rounding by rounding.
  ValueId of_two_images() {
    const ValueId other = draw_.one_of(images_);
    const bool may_choose = graph_.type(other).shape() == type().shape();
    const Arithmetic how =
        may_choose && draw_.chance(0.4)
            ? draw_.one_of<Arithmetic>(
                  {Arithmetic::kMaximum, Arithmetic::kMinimum, Arithmetic::kFirstMaximum})
            : smooth();
    return combine(x_, other, how);
  }

  ValueId square(ValueId x, const char* suffix) {
    return arithmetic(graph_, x, x, name(suffix), Arithmetic::kMultiply);
  }

  /// x * x + 1: to be divided by.
  ValueId positive(ValueId x) {
    const ParameterOperand one{
        .shape = {1}, .role = ParameterRole::kBuffer, .initial = {Initial::Kind::kConstant, 1}};
    return arithmetic_with_parameter(graph_, square(x, "squares"), name("positive"),
                                     Arithmetic::kAdd, one);
  }

  /// 1.5 / (x * x + 1), which keeps deep networks from growing without bound.
  ValueId gate(ValueId x) {
    const ParameterOperand numerator{.shape = {1},
                                     .side = ParameterOperand::Side::kLeft,
                                     .initial = {Initial::Kind::kConstant, 1.5}};
    return arithmetic_with_parameter(graph_, positive(x), name("gate"), Arithmetic::kDivide,
                                     numerator);
  }

  /// The mean of squares, since that of normalised pixels is zero.
  ValueId squeeze() { return spatial_reduction(graph_, square(x_, "power"), name("squeeze"), {}); }

  ValueId squeeze_and_excite() {
    ValueId scale = squeeze();
    if (draw_.chance(0.6))
      scale =
          convolution(graph_, scale, name("fc"), {draw_.chance(0.3) ? 1 : type().channels(), {1}});
    return combine(x_, gate(scale), smooth());
  }

  /// [N, 1, space] from a convolution that keeps the size.
  ValueId attend() {
    const int64_t radius = draw_.integer(0, 1);
    ConvolutionOptions options;
    options.out_channels = 1;
    options.kernel = {2 * radius + 1};
    options.padding = {radius};
    ValueId map = convolution(graph_, x_, name("map"), options);
    if (draw_.chance(0.5)) map = gate(map);
    return combine(x_, map, smooth());
  }

  /// [C, space...].
  Shape whole_map() const {
    const Shape shape = type().shape();
    return {shape.begin() + 1, shape.end()};
  }
  Shape parameter_shape() {
    const Shape map = whole_map();
    Shape shape(map.size(), 1);
    switch (draw_.integer(0, 4)) {
      case 0:  // [C, 1...]
        shape[0] = type().channels();
        return shape;
      case 1:  // [1, C, 1...]
        shape.insert(shape.begin() + 1, type().channels());
        return shape;
      case 2:  // [space...]
        return {map.begin() + 1, map.end()};
      case 3:
        return {1};
      default:
        return map;
    }
  }

  ValueId with_parameter() {
    const auto how = draw_.one_of<Arithmetic>(
        {Arithmetic::kAdd, Arithmetic::kSubtract, Arithmetic::kMultiply, Arithmetic::kDivide,
         Arithmetic::kMaximum, Arithmetic::kMinimum, Arithmetic::kFirstMaximum});
    ParameterOperand operand{.shape = parameter_shape()};
    if (draw_.chance(0.4)) operand.side = ParameterOperand::Side::kLeft;
    if (draw_.chance(0.3))
      operand.role = draw_.chance(0.5) ? ParameterRole::kFrozen : ParameterRole::kBuffer;
    operand.initial = {Initial::Kind::kUniform, 1};
    if (how == Arithmetic::kMaximum || how == Arithmetic::kMinimum ||
        how == Arithmetic::kFirstMaximum)
      operand.shape = whole_map();  // see of_two_images
    if (how == Arithmetic::kDivide) {
      operand.side = ParameterOperand::Side::kRight;
      operand.initial = {Initial::Kind::kConstant, draw_.real(1, 2)};
    }
    return arithmetic_with_parameter(graph_, x_, name_, how, operand);
  }

  /// Divides by something of the pixels or of all of them.
  ValueId quotient() {
    const ValueId by = positive(draw_.chance(0.5) ? squeeze() : x_);
    return arithmetic(graph_, x_, by, name_, Arithmetic::kDivide);
  }

  /// Over some axes, or all of them.
  ValueId reduce(ValueId x, const char* suffix, double chance_of_sum) {
    SpatialReductionOptions options;
    if (draw_.chance(chance_of_sum)) options.how = SpatialReductionOptions::How::kSum;
    for (int axis = 0; axis < type().num_spatial(); ++axis)
      if (draw_.chance(0.5)) options.axes.push_back(axis);
    return spatial_reduction(graph_, x, name(suffix), options);
  }

  ValueId rows_and_columns() {
    const ValueId power = square(x_, "power");
    const ValueId left = gate(reduce(power, "left", 0)), right = reduce(power, "right", 0.3);
    return not_too_small(arithmetic(graph_, left, right, name("grid"), Arithmetic::kMultiply));
  }

  ValueId adaptive_pool() {
    AdaptivePoolOptions options;
    if (draw_.chance(0.3))
      options.size = {draw_.integer(1, 7)};
    else
      options.size = draw_.per_axis(type().num_spatial(), 0, 9);
    const ValueId pooled = draw_.chance(0.5) ? adaptive_average_pool(graph_, x_, name_, options)
                                             : adaptive_max_pool(graph_, x_, name_, options);
    if (is_small(pooled)) throw_error<InvalidInput>("[{}] too few pixels are left", name_);
    return pooled;
  }

  Graph& graph_;
  const std::vector<ValueId>& images_;
  const std::string& name_;
  Draw& draw_;
  const ValueId x_;
};

}  // namespace

ValueId random_arithmetic(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                          Draw& draw) {
  return ArithmeticMaker(graph, images, name, draw).make();
}

}  // namespace tessera
