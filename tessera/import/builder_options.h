#pragma once
// The options of the builders of ops/ as plain data (plain_data.h).

#include "tessera/base/plain_data.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/norm/layer_norm.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/channel_reduction.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/prelu.h"
#include "tessera/ops/pointwise/softmax.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/amax.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/arrangement.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/ops/shape/slice.h"

namespace tessera {

// For builders that take a number instead of a struct, or nothing.
struct NoOptions {};
struct ArithmeticOptions {
  Arithmetic how = Arithmetic::kAdd;
};
struct ParameterArithmeticOptions {
  Arithmetic how = Arithmetic::kAdd;
  ParameterOperand operand;  // without its initial value: the parameter is there already
};
struct AxisOptions {
  int axis = 1;
};

template <class Data>
void fields(Data&, NoOptions&) {}

template <class Data>
void fields(Data& data, ArithmeticOptions& o) {
  data.choice(o.how, kLastArithmetic);
}

template <class Data>
void fields(Data& data, ParameterArithmeticOptions& o) {
  data.choice(o.how, kLastArithmetic);
  data(o.operand.shape, o.operand.stored);
  data.choice(o.operand.side, ParameterOperand::Side::kRight);
}

template <class Data>
void fields(Data& data, AxisOptions& o) {
  data(o.axis);
}

template <class Data>
void fields(Data& data, AdaptivePoolOptions& o) {
  data(o.size);
}

template <class Data>
void fields(Data& data, AmaxOptions& o) {
  data(o.axes);
}

template <class Data>
void fields(Data& data, Arrangement& o) {
  data(o.sizes, o.from, o.to);
}

template <class Data>
void fields(Data& data, BatchNormOptions& o) {
  data(o.epsilon, o.momentum, o.affine, o.running, o.batch_parts);
  data.choice(o.statistics, BatchNormOptions::Statistics::kRunning);
  data.choice(o.activation, BatchNormOptions::Activation::kRelu);
}

template <class Data>
void fields(Data& data, ChannelReductionOptions& o) {
  data.choice(o.how, ChannelReductionOptions::How::kMax);
}

template <class Data>
void fields(Data& data, ConvolutionOptions& o) {
  data(o.out_channels, o.kernel, o.stride, o.dilation, o.padding, o.padding_high, o.groups, o.bias);
}

template <class Data>
void fields(Data& data, DropoutOptions& o) {
  data(o.probability, o.scale);
  data.choice(o.unit, DropoutOptions::Unit::kBatch);
  data.choice(o.form, DropoutOptions::Form::kAlpha);
}

template <class Data>
void fields(Data& data, GroupNormOptions& o) {
  data(o.groups, o.epsilon, o.affine);
}

template <class Data>
void fields(Data& data, InstanceNormOptions& o) {
  data.choice(o.statistics, InstanceNormOptions::Statistics::kRunning);
  data(o.epsilon, o.momentum, o.affine, o.track_running);
}

template <class Data>
void fields(Data& data, InterpolateOptions& o) {
  data.choice(o.mode, InterpolationMode::kCubic);
  data.choice(o.corners, Corners::kAligned);
  data(o.size, o.scale, o.recompute_scale_factor);
}

template <class Data>
void fields(Data& data, LayerNormOptions& o) {
  data.choice(o.over, LayerNormOptions::Over::kSample);
  data(o.epsilon, o.affine);
}

template <class Data>
void fields(Data& data, LinearOptions& o) {
  data(o.out_features, o.bias);
}

template <class Data>
void fields(Data& data, PadOptions& o) {
  data(o.low, o.high, o.value);
  data.choice(o.mode, PadOptions::Mode::kCircular);
}

template <class Data>
void fields(Data& data, PointwiseOptions& o) {
  data.choice(o.function, kLastPointwiseFunction);
  data(o.a, o.b);
}

template <class Data>
void fields(Data& data, PoolOptions& o) {
  data(o.kernel, o.stride, o.padding, o.dilation, o.ceil_mode, o.count_include_pad,
       o.divisor_override);
}

template <class Data>
void fields(Data& data, PreluOptions& o) {
  data(o.num_parameters, o.initial);
}

template <class Data>
void fields(Data& data, SliceOptions& o) {
  data(o.axis, o.begin, o.end, o.step);
}

template <class Data>
void fields(Data& data, SoftmaxOptions& o) {
  data.choice(o.form, SoftmaxOptions::Form::kLogSoftmax);
  data(o.groups);
}

template <class Data>
void fields(Data& data, SpatialReductionOptions& o) {
  data.choice(o.how, SpatialReductionOptions::How::kMean);
  data(o.axes, o.keep_axes);
}

template <class Data>
void fields(Data& data, TransposedConvolutionOptions& o) {
  data(o.out_channels, o.kernel, o.stride, o.dilation, o.padding, o.output_padding, o.groups,
       o.bias);
}

}  // namespace tessera
