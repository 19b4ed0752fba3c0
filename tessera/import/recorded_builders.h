#pragma once
// The builders of ops/ on a Recording: each call is run and remembered.

#include <string>
#include <utility>
#include <vector>

#include "tessera/import/builder_options.h"
#include "tessera/import/recording.h"

namespace tessera {

template <class Options>
ValueId record(Recording& recording, Builder builder, std::vector<ValueId> inputs,
               const std::string& name, Options options) {
  BuilderCall call{builder, std::move(inputs), name, {}};
  PlainWriter write = writer_to(call.options);
  fields(write, options);
  return recording.add(call);
}

inline ValueId adaptive_average_pool(Recording& recording, ValueId x, const std::string& name,
                                     const AdaptivePoolOptions& options) {
  return record(recording, Builder::kAdaptiveAveragePool, {x}, name, options);
}

inline ValueId adaptive_max_pool(Recording& recording, ValueId x, const std::string& name,
                                 const AdaptivePoolOptions& options) {
  return record(recording, Builder::kAdaptiveMaxPool, {x}, name, options);
}

inline ValueId amax(Recording& recording, ValueId x, const std::string& name,
                    const AmaxOptions& options) {
  return record(recording, Builder::kAmax, {x}, name, options);
}

inline ValueId arithmetic(Recording& recording, ValueId a, ValueId b, const std::string& name,
                          Arithmetic how) {
  return record(recording, Builder::kArithmetic, {a, b}, name, ArithmeticOptions{how});
}

inline ValueId arithmetic_with_parameter(Recording& recording, ValueId x, const std::string& name,
                                         Arithmetic how, const ParameterOperand& operand) {
  return record(recording, Builder::kArithmeticWithParameter, {x}, name,
                ParameterArithmeticOptions{how, operand});
}

inline ValueId average_pool(Recording& recording, ValueId x, const std::string& name,
                            const PoolOptions& options) {
  return record(recording, Builder::kAveragePool, {x}, name, options);
}

inline ValueId batch_norm(Recording& recording, ValueId x, const std::string& name,
                          const BatchNormOptions& options) {
  return record(recording, Builder::kBatchNorm, {x}, name, options);
}

inline ValueId channel_reduction(Recording& recording, ValueId x, const std::string& name,
                                 const ChannelReductionOptions& options) {
  return record(recording, Builder::kChannelReduction, {x}, name, options);
}

inline ValueId concat(Recording& recording, const std::vector<ValueId>& values,
                      const std::string& name, int axis) {
  return record(recording, Builder::kConcat, values, name, AxisOptions{axis});
}

inline ValueId contract(Recording& recording, ValueId a, ValueId b, const std::string& name,
                        const Arrangement& options) {
  return record(recording, Builder::kContract, {a, b}, name, options);
}

inline ValueId convolution(Recording& recording, ValueId x, const std::string& name,
                           const ConvolutionOptions& options) {
  return record(recording, Builder::kConvolution, {x}, name, options);
}

inline ValueId dropout(Recording& recording, ValueId x, const std::string& name,
                       const DropoutOptions& options) {
  return record(recording, Builder::kDropout, {x}, name, options);
}

inline ValueId flatten(Recording& recording, ValueId x) {
  return record(recording, Builder::kFlatten, {x}, "", NoOptions{});
}

inline ValueId group_norm(Recording& recording, ValueId x, const std::string& name,
                          const GroupNormOptions& options) {
  return record(recording, Builder::kGroupNorm, {x}, name, options);
}

inline ValueId instance_norm(Recording& recording, ValueId x, const std::string& name,
                             const InstanceNormOptions& options) {
  return record(recording, Builder::kInstanceNorm, {x}, name, options);
}

inline ValueId interpolate(Recording& recording, ValueId x, const std::string& name,
                           const InterpolateOptions& options) {
  return record(recording, Builder::kInterpolate, {x}, name, options);
}

inline ValueId layer_norm(Recording& recording, ValueId x, const std::string& name,
                          const LayerNormOptions& options) {
  return record(recording, Builder::kLayerNorm, {x}, name, options);
}

inline ValueId linear(Recording& recording, ValueId x, const std::string& name,
                      const LinearOptions& options) {
  return record(recording, Builder::kLinear, {x}, name, options);
}

inline ValueId max_pool(Recording& recording, ValueId x, const std::string& name,
                        const PoolOptions& options) {
  return record(recording, Builder::kMaxPool, {x}, name, options);
}

inline ValueId max_unpool(Recording& recording, ValueId values, ValueId pooled,
                          const std::string& name, const PoolOptions& options) {
  return record(recording, Builder::kMaxUnpool, {values, pooled}, name, options);
}

inline ValueId pad(Recording& recording, ValueId x, const std::string& name,
                   const PadOptions& options) {
  return record(recording, Builder::kPad, {x}, name, options);
}

inline ValueId pointwise(Recording& recording, ValueId x, const std::string& name,
                         const PointwiseOptions& options) {
  return record(recording, Builder::kPointwise, {x}, name, options);
}

inline ValueId prelu(Recording& recording, ValueId x, const std::string& name,
                     const PreluOptions& options) {
  return record(recording, Builder::kPrelu, {x}, name, options);
}

inline ValueId rearrange(Recording& recording, ValueId x, const std::string& name,
                         const Arrangement& options) {
  return record(recording, Builder::kRearrange, {x}, name, options);
}

inline ValueId relu(Recording& recording, ValueId x, const std::string& name) {
  return record(recording, Builder::kRelu, {x}, name, NoOptions{});
}

inline ValueId slice(Recording& recording, ValueId x, const std::string& name,
                     const SliceOptions& options) {
  return record(recording, Builder::kSlice, {x}, name, options);
}

inline ValueId softmax(Recording& recording, ValueId x, const std::string& name,
                       const SoftmaxOptions& options) {
  return record(recording, Builder::kSoftmax, {x}, name, options);
}

inline ValueId spatial_reduction(Recording& recording, ValueId x, const std::string& name,
                                 const SpatialReductionOptions& options) {
  return record(recording, Builder::kSpatialReduction, {x}, name, options);
}

inline ValueId squeeze(Recording& recording, ValueId x, const std::string& name, int axis) {
  return record(recording, Builder::kSqueeze, {x}, name, AxisOptions{axis});
}

inline ValueId transposed_convolution(Recording& recording, ValueId x, const std::string& name,
                                      const TransposedConvolutionOptions& options) {
  return record(recording, Builder::kTransposedConvolution, {x}, name, options);
}

inline ValueId unsqueeze(Recording& recording, ValueId x, const std::string& name, int axis) {
  return record(recording, Builder::kUnsqueeze, {x}, name, AxisOptions{axis});
}

}  // namespace tessera
